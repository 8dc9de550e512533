"""Python backend: each instance of a model runs in its own process.

    engine -> model.PythonModel -> pool.Pool -> process.WorkerProcess ==socket, shared memory== worker -> model.py

Both sides share `wire/`; `worker/` runs in the worker process alone and is never imported by the server.
"""
