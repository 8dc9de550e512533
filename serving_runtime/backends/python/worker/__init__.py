"""Worker process: runs the model's own code, with `triton_python_backend_utils` for it.

__main__ -> service (one message after the other) -> triton_model -> model.py
connection (a thread that receives) <-> the server
"""
