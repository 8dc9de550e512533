"""Artifact store: model files by their digest."""
