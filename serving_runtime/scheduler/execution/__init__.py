"""Executions of a model: instances, joined requests, and how they end."""
