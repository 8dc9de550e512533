"""Ensembles of decision trees: XGBoost, LightGBM, and Triton's FIL backend by name."""
