"""scikit-learn backend: estimators from skops files and pickles."""
