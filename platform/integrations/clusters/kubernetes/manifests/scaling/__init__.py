"""Autoscalers of a revision. Pure."""
