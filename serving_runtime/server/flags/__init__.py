"""Command line of the server, flags named as Triton names them."""
