"""What is known of rollouts."""
