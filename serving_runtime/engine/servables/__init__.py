"""Versions of models that answer requests, by the kind of model."""
