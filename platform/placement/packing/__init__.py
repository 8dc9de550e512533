"""Which replica gets which slice. Pure."""
