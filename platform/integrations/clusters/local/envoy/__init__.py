"""Routes to xDS files for Envoy. Everything in here is pure; `gateway.py` writes the files and runs the process."""
