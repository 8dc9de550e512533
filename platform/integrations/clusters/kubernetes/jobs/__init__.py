"""Kubernetes Jobs: questions about a model, and replays."""
