"""The page of a cluster's GPUs."""
