"""Envoy configuration of the gateway: bootstrap and resources, from routes. All pure."""
