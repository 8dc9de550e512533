"""Trials: a request, answered before a service runs the model."""
