"""Observed state of a cluster, in the reconciler's terms."""
