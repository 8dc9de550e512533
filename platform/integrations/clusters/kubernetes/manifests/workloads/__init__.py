"""Workload manifests of a revision. Pure."""
