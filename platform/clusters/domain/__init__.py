"""Cluster files and prices. Pure."""
