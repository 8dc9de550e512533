"""HTTP/2 header fields: HPACK, rules for requests, reuse of repeated blocks (RFC 7541; RFC 9113, section 8)."""
