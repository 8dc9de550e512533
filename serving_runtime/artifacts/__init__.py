"""Model artifact download and cache. Called by `prepare`.

fetching    one artifact: received, unpacked, checked against its digest, and then there by one rename
receiving   one file, taken up where it broke off
remotes     where files come from: `web`, `objects` (S3, Google Cloud Storage)
cache       artifacts that several pods share
"""
