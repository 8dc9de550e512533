"""Queries of upgrades of the fleet."""
