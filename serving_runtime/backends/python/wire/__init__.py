"""Inter-process communication of server and worker: frames over a socket pair, large tensors in shared memory."""
