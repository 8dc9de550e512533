"""What the gateway routes by: Envoy's bootstrap and resources out of routes. Everything in here is pure."""
