"""Which GPUs to cut again, and how that is carried out. Pure."""
