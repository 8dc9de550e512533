"""Usage: what a line of the access log says, sums of lines, months and budgets. Pure."""
