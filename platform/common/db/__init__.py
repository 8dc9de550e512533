"""Counts and text searches on SQLite and PostgreSQL."""
