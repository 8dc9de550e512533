"""Tensor codecs that HTTP and gRPC share."""
