"""gRPC: the V2 service, and its two servers: grpcio's, and one on our own HTTP/2."""
