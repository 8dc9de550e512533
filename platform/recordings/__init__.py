"""Recordings of client traffic, and replays of them."""
