"""Kinds of events, and how pages stream them. Pure."""
