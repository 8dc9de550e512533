"""Header fields of HTTP/2: HPACK, what requests may have, blocks that come again (RFC 7541; RFC 9113, section 8)."""
