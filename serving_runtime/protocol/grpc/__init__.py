"""gRPC: the V2 service, and the two servers that there are for it: grpcio's, and one on HTTP/2 of our own."""
