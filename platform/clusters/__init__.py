"""Clusters: where services run, how they are reached, and what they cost."""
