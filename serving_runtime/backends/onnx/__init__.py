"""ONNX Runtime backend, and checks of ONNX files before they are opened."""
