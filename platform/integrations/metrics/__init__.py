"""Metrics that others measure: replicas' pages and Prometheus."""
