"""Jobs on this machine: processes that answer questions about a model."""
