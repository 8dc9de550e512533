"""Decision tree ensembles: XGBoost, LightGBM, and Triton's FIL backend by name."""
