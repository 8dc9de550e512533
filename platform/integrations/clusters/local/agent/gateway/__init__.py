"""Envoy: its process, its configuration, its admin page."""
