"""Job manifests of a cluster. Pure."""
