"""`/api/v1/clusters`."""
