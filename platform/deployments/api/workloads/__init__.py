"""What replicas call from their clusters, under `/api/v1/clusters/<cluster>/workloads/`."""
