"""How the server and a worker process talk: frames over a socket pair, large tensors in shared memory."""
