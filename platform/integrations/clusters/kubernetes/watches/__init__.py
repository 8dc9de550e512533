"""Kubernetes watches: which services' objects changed, reported at once instead of by the next poll.

    state.py     one watch: what it knows, what follows from what the API server says          pure
    coalesce.py  which services to turn to now: each once a second at most                      pure
    watcher.py   the streams: a thread for each kind of each namespace                          sockets

A watch reports only *that* something of a service changed; the reconciler reads the cluster and decides. So a watch may
report too much, and a failed one costs only time: the reconciler still polls.
"""

from integrations.clusters.kubernetes.watches.coalesce import Coalescer
from integrations.clusters.kubernetes.watches.watcher import Watcher

__all__ = ["Coalescer", "Watcher"]
