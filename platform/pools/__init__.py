"""Model pools as their owners see them. A pool is a service (`deployments`); here is what its replicas report."""
