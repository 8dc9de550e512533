"""Page of the fleet."""
