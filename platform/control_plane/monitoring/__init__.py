"""Metrics and traces of the control plane itself."""
