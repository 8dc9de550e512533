"""gRPC services: inference, health, reflection, and Triton's extensions."""
