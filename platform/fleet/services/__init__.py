"""Commands on upgrades of the fleet, and their progress."""
