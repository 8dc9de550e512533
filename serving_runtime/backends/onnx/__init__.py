"""ONNX models by ONNX Runtime, and what is checked of their files first."""
