"""gRPC over our own HTTP/2 (gRPC: PROTOCOL-HTTP2)."""
