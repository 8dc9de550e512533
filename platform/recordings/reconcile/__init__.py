"""The recordings' part in a tick of the reconciler."""
