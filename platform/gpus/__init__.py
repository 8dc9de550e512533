"""GPU repartitioning: proposal, approval, and execution on a node."""
