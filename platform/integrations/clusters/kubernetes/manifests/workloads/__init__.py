"""Pods of a revision and what they need. Pure."""
