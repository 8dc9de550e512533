"""Measuring proxy in front of a container of the user's own: forwards HTTP/1.1, counts requests, answers for health.

    gateway --> client_connection --> exchange --> container_connection --> the container
                                        |  `-- places (concurrency limit)
                                        `-- request_counts --> metrics port

`options` and `server` are the way in. Nothing here reads a body: bytes pass in pieces, in bounded memory. It imports
neither numpy nor the engine, so it starts in a fraction of a second (tests/serving_runtime/proxy).
"""
