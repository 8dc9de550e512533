"""Webhooks: subscriptions, delivery, and the live feed of pages."""
