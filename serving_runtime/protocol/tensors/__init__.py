"""Tensors on the wire, as HTTP and gRPC share them."""
