"""Measurements of a gate, one criterion per module. Pure."""
