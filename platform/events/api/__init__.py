"""`/api/v1/webhooks`."""
