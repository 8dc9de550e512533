"""From an ONNX model to a TensorRT plan; what `build-plan` does. Stands apart from serving."""
