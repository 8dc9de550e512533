"""Addresses of builds, tunings and trials under `/api/v1/models/`."""
