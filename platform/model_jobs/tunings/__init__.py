"""Tunings: search for the configuration with the highest throughput within a latency limit."""
