"""Watches on a cluster: which services' objects changed, told at once instead of found by the next poll.

    state.py     one watch: what it knows, what follows from what the API server says          pure
    coalesce.py  which services to turn to now: each once a second at most                      pure
    watcher.py   the streams: a thread for each kind of each namespace                          sockets

A watch tells only *that* something of a service changed; what to do is found out by the reconciler, which reads the
cluster anew. So a watch may tell too much, and one that is away costs only time: the reconciler polls all the same.
"""

from integrations.clusters.kubernetes.watches.coalesce import Coalescer
from integrations.clusters.kubernetes.watches.watcher import Watcher

__all__ = ["Coalescer", "Watcher"]
