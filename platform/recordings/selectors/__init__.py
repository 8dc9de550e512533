"""What is known of recordings and replays."""
