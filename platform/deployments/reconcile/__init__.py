"""The reconciler: brings services where they should be."""
