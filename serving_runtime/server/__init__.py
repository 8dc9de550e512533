"""The process: its command line, its sockets, its start and its end."""
