"""From an ONNX model to the same in another precision, or to a TensorRT plan; what `build` does. Apart from serving."""
