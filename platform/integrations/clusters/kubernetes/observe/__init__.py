"""What runs on a cluster, in the reconciler's words."""
