"""scikit-learn estimators, from skops files and pickles."""
