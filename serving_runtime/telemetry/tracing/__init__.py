"""Request tracing: sampling, the timestamps of a request (arrival, queue, compute, end), and exporters."""
