"""Decisions about services and rollouts: no database, no clock, no network. Pure."""
