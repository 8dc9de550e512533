"""The services on HTTP/2 of our own: what gRPC adds to streams of bytes (gRPC: PROTOCOL-HTTP2)."""
