"""Queries of GPUs and repartitions."""
