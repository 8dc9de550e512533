"""HTTP/1.1 without a framework: connections, routes, and the V2 inference codec."""
