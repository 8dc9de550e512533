"""Apply of the desired state on a cluster."""
