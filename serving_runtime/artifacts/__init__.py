"""Model artifact download and cache. Called by `prepare`, and by the fetcher of a model pool.

fetch_artifact   one artifact: received, unpacked, checked against its digest, and then there by one rename
download         one file, taken up where it broke off
remotes          where files come from: `web`, `buckets` (S3, Google Cloud Storage)
cache            artifacts that several pods share
layout           the folder of a model repository for an artifact
"""
