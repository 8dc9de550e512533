"""What is known of GPUs and repartitions."""
