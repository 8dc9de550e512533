"""Hooks: what rooms above register for changes of accounts, and for teams."""

from datetime import datetime

from accounts.domain.quota import Usage
from accounts.models import ApiToken
from common.hooks import Hook

team_usage: Hook[[str], Usage] = Hook()
"""The name of a team; returns what its models take."""
token_made_for_another: Hook[[ApiToken, datetime], None] = Hook()
"""A token that a user made for another one, and the time, in the transaction that makes it."""
