"""Recordings of what clients send, and replays of them."""
