"""What clients got of services."""
