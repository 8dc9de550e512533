"""Builds: an optimized version made from another."""
