"""Desired state of a service, derived from its file, its rollout and its cluster. Pure."""
