"""GPUs and repartitions of a cluster, under `/api/v1/clusters/NAME/`."""
