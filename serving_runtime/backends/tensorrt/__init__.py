"""TensorRT backend."""
