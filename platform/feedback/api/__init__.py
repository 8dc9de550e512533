"""Feedback of a service, under `/api/v1/services/`."""
