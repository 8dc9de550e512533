"""Horizontal autoscaling: the number of replicas of a revision. Pure."""
