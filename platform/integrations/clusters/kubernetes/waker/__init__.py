"""Waker: starts the first replica of services that are asleep on Kubernetes, while Envoy holds their requests.

    server.py     Envoy's external authorization (ext_authz) over gRPC: headers of a request, never its body
    calls.py      what Envoy sends and gets                                                       pure
    callers.py    whether the caller's key may call the service, by the service's live policy     pure
    replicas.py   whether a service is awake, from watches; the scale subresource
    waker.py      which requests wait, how many, and for how long

Envoy asks for each request of a service that may sleep. That of a service that is awake goes on at once, from memory.
"""
