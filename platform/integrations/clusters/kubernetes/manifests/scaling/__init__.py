"""Autoscaler manifests of a revision. Pure."""
