"""Routes of a service, by the Gateway API. Pure."""
