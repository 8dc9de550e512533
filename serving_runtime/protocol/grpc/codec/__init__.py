"""gRPC messages to and from requests of the engine."""
