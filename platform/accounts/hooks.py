"""Hooks: what rooms above register for teams."""

from accounts.domain.quota import Usage
from common.hooks import Hook

team_usage: Hook[[str], Usage] = Hook()
"""The name of a team; returns what its models take."""
