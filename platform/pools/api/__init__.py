"""REST API of model pools."""
