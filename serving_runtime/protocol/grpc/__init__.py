"""gRPC: the V2 service, and its server on our own HTTP/2."""
