"""Tunings: the configuration that serves most within a latency."""
