"""Feedback as pages and the API show it."""
