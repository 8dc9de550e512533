"""Roles and scopes. Pure."""
