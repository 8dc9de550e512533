"""Changes of keys, and what gateways are sent."""
