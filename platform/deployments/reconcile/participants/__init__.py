"""Participants of the reconciler's turns. Those of this app are listed in `reconciler`; rooms above register theirs."""

REGISTERED: list[str] = []
"""Paths of the participants of other apps, which collect and record after all others."""


def register(path: str) -> None:
    """Register the participant at a path such as `recordings.reconcile.payloads.RECORDINGS`; idempotent."""
    if path not in REGISTERED:
        REGISTERED.append(path)
