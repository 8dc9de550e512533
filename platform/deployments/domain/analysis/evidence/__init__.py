"""Evidence of a step, accumulated from tick to tick. Pure."""
