"""Reconciler of custom resources."""
