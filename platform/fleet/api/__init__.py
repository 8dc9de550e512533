"""The fleet under `/api/v1/fleet/`."""
