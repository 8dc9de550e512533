"""HTTP/2 for servers: frames, streams and flow control (RFC 9113). Knows neither gRPC nor models."""
