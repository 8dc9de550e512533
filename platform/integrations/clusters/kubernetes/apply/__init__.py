"""What is desired, made so on a cluster."""
