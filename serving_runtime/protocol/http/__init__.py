"""HTTP/1.1 without a framework: a connection, its routes, and the V2 infer codec."""
