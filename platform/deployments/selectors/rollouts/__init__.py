"""Rollout selectors."""
