"""Pages of model pools."""
