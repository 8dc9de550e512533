"""What is counted of a step, from tick to tick. Pure."""
