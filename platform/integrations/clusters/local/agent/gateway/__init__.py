"""Envoy gateway: its process, its configuration, its admin page."""
