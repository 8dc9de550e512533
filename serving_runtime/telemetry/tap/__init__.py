"""Payload tap: records a share of the requests with their responses, as CloudEvents to a file or a URL."""
