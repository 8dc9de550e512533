"""gRPC codec: messages to and from requests of the engine."""
