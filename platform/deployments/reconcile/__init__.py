"""Reconciler: brings services to their desired state."""
