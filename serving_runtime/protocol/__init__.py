"""Bytes to InferRequest and InferResponse to bytes: HTTP, gRPC, and the tensor codecs that both use."""
