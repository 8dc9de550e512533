"""Hooks: callbacks that other apps register for changes of accounts."""

from datetime import datetime

from accounts.models import ApiToken
from common.hooks import Hook

token_made_for_another: Hook[[ApiToken, datetime], None] = Hook()
"""A token that a user made for another one, and the time, in the transaction that makes it."""
