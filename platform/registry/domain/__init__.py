"""Domain rules of models and versions. Pure."""
