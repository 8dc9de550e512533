"""Bin packing of replicas onto GPUs and MIG slices. Pure."""
