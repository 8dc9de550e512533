"""Memory of the process: the budget of models, what is given back, and regions shared with clients."""
