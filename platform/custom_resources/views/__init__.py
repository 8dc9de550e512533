"""Statuses of custom resources."""
