"""Replicas: their processes, memory, health and relays."""
