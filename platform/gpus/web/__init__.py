"""Page of a cluster's GPUs."""
