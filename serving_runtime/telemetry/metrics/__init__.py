"""Metrics page (Prometheus)."""
