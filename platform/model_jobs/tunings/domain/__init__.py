"""Orders, results and the plot of tunings. Pure."""
