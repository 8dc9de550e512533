"""Models written in Python, each instance in a process of its own.

    engine -> model.PythonModel -> pool.Pool -> process.WorkerProcess ==socket, shared memory== worker -> model.py

`wire/` is what both sides share; `worker/` runs in the worker process alone and is never imported by the server.
"""
