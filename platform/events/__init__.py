"""Events of services and clusters, and the webhooks that receive them."""
