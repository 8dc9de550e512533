"""Web views of models."""
