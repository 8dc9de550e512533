"""Services of usage: reading of the access log, budgets, retention."""
