"""Feedback in pure functions."""
