"""Kinds of events. Pure."""
