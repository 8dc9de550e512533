"""Model configuration tuning for a latency limit, on this machine; started by `fairlead-serve tune`."""
