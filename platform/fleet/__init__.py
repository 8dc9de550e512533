"""Upgrades of the fleet: services go over to present pod templates in waves."""
