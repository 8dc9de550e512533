"""Replica processes, with their memory, health and relays."""
