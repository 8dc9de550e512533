"""MIG: what each GPU product can be cut into. Pure."""
