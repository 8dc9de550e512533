"""Client of the V2 inference protocol."""
