"""Changes of clusters and their prices, and which cluster a service runs on."""
