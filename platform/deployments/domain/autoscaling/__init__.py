"""Horizontal autoscaling of revisions. Pure."""
