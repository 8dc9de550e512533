"""Kubernetes watches: what is on a cluster, as its API server reports it, and which services' objects changed.

    watcher.py     the streams, on one event loop                                               sockets
    state.py       one watch: what follows from what the API server says                        pure
    trimmed.py     what is kept of an object                                                    pure
    cache.py       the objects of a cluster, and a mark of each service that changes with them
    cached_api.py  the API client whose reads come from the cache
    coalesce.py    which services to turn to now: each once a second at most                    pure

Where watches run, the driver reads the cluster from memory. Elsewhere, and while a watch is away, it asks the API
server.
"""

from integrations.clusters.kubernetes.watches.cache import Cache
from integrations.clusters.kubernetes.watches.coalesce import Coalescer
from integrations.clusters.kubernetes.watches.watcher import Watcher

__all__ = ["Cache", "Coalescer", "Watcher"]
