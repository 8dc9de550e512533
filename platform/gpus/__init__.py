"""Repartition of GPUs: proposed, approved, carried out on a node."""
