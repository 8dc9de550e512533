"""Queries of feedback."""
