"""Revisions: their change, their GPU or slice, their history."""
