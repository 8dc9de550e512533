"""The errors of this room.

ReleaseError    a release cannot be made, or is not to be trusted: one sentence for the terminal
"""


class ReleaseError(Exception):
    """The request, what was found, what to do."""
