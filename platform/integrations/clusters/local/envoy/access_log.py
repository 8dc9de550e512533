"""Envoy access log of the gateway: one JSON object a line, which usage is read from. Pure.

Envoy escapes what clients send. Lines have neither credentials nor query strings. Who called is in headers that
`jwt_authn` writes and no client can, and null for callers without a key: a formatter that finds them in the metadata
takes Envoy a dozen times as long.
"""

from typing import Any

from integrations.clusters.local.envoy.access import CALLER_HEADER, KEY_HEADER, TEAM_HEADER

ROWS_HEADER = "fairlead-rows"
"""How many rows a replica says that a request had; serving_runtime/protocol/rows.py."""

FLUSH_INTERVAL_MS = 1000
"""Lines wait in Envoy's memory for so long: the most that a killed Envoy loses."""

_FILE = "type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog"
_LONGEST = 200
_LONGEST_ROWS = 20
_LONGEST_TRACEPARENT = 55  # W3C Trace Context: of version 00

Json = dict[str, Any]


def access_log(path: str) -> list[Json]:
    """Return the loggers of the listener, which append to the file at `path`."""
    config = {"@type": _FILE, "path": path, "log_format": {"json_format": dict(_FORMAT)}}
    return [{"name": "envoy.access_loggers.file", "typed_config": config}]


_FORMAT = {
    "time": "%START_TIME%",
    "request_id": f"%REQ(X-REQUEST-ID):{_LONGEST}%",
    "traceparent": f"%REQ(TRACEPARENT):{_LONGEST_TRACEPARENT}%",
    "service": "%ROUTE_NAME%",
    "upstream": "%UPSTREAM_CLUSTER_RAW%",
    "token_id": f"%REQ({KEY_HEADER})%",
    "key": f"%REQ({CALLER_HEADER})%",
    "team": f"%REQ({TEAM_HEADER})%",
    "protocol": "%PROTOCOL%",
    "method": f"%REQ(:METHOD):{_LONGEST}%",
    "path": f"%PATH(NQ:PATH):{_LONGEST}%",
    "status": "%RESPONSE_CODE%",
    "grpc_status": "%GRPC_STATUS_NUMBER%",
    "bytes_in": "%BYTES_RECEIVED%",
    "bytes_out": "%BYTES_SENT%",
    "duration_ms": "%DURATION%",
    "model_us": "%COMMON_DURATION(US_TX_BEG:US_RX_END:us)%",
    "attempts": "%UPSTREAM_REQUEST_ATTEMPT_COUNT%",
    "rows": f"%RESP({ROWS_HEADER}):{_LONGEST_ROWS}%",
    "grpc_rows": f"%TRAILER({ROWS_HEADER}):{_LONGEST_ROWS}%",
    "flags": "%RESPONSE_FLAGS%",
}
"""`service` is the name of the route, `upstream` that of the cluster (`names.cluster_name`), which says the
revision, also where `attempts` is 0: then the gateway refused the request. `path` is the one that the model gets. A
replica says `rows` in HTTP's headers, `grpc_rows` in trailers."""
