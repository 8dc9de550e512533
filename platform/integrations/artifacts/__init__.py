"""The artifact store: model files by their digest."""
