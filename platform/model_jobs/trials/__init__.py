"""Trials: single inference requests to a version without a service."""
