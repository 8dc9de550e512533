"""Server process: command line, sockets, startup and graceful shutdown."""
