"""Builds: a version made of another."""
