"""Endpoints for replicas and jobs on clusters, under `/api/v1/clusters/<cluster>/workloads/`."""
