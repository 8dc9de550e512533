"""Inference protocols HTTP and gRPC: bytes to InferRequest, InferResponse to bytes, by tensor codecs that both use."""
