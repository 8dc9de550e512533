"""Feedback on a service's answers, under `/api/v1/services/`."""
