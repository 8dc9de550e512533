"""Changes of repartitions."""
