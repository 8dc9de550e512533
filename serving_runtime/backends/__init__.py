"""Backends: libraries that run models. One module per library, imported when a model needs it."""
