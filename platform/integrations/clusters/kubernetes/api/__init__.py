"""Kubernetes API server access."""
