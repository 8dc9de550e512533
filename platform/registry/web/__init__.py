"""The web UI of models: its views."""
