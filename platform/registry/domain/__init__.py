"""Decisions about models and versions. Pure."""
