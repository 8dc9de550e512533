"""Metrics sources: replicas' pages and Prometheus."""
