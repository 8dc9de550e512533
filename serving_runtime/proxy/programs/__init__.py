"""Programs in place of containers: the proxy starts them as its children and forwards to them.

    programs_file --> plan --> children (start, watch, end)
                        |----> ProxyServer (requests, health, metrics)
                        `----> byte_relay (gRPC of a transformer)

`replica` runs them together, and `guard` kills what a killed proxy would leave. No module here is
loaded by a proxy in front of a container.
"""
