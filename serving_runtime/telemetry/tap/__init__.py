"""The payload tap: a share of the requests with their answers, as CloudEvents to a file or a URL."""
