"""Changes of clusters and their prices, and the selection of a service's cluster."""
