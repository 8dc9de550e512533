"""Model optimization: converts an ONNX model to another precision or a TensorRT plan; `build`. Apart from serving."""
