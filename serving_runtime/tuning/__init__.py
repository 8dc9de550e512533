"""Finds how a model is best configured on this machine for a limit of its latency; started by `fairlead-serve tune`."""
