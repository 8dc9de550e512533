"""Envoy listener of the gateway: HTTP/1, h2c and gRPC on one port. Pure.

It is in the bootstrap and never changes, so that a taken port ends Envoy at its start with a reason.
"""

from collections.abc import Iterator
from typing import Any

from integrations.clusters.local.envoy import access, cors, limits, wake
from integrations.clusters.local.envoy.access_log import access_log
from integrations.clusters.local.envoy.filters import MANAGER, http_filters
from integrations.clusters.local.envoy.scopes import (
    SERVICE_METADATA,
    name_by_host,
    name_by_metadata_or_path,
    scope_key,
)

STAT_PREFIX = "gateway"

CONNECTION_BUFFER_BYTES = 256 * 1024
"""Buffer of one client's connection, each way, while its data is not consumed: then Envoy stops reading."""

STREAM_WINDOW_BYTES = 1024 * 1024
CONNECTION_WINDOW_BYTES = 4 * 1024 * 1024
"""HTTP/2 flow control windows of a client: of one call, and of all calls of one connection together."""

MAX_STREAMS = 128
"""Concurrent calls of one connection; clients delay further ones. The data of each may wait for the runtime, up to
STREAM_WINDOW_BYTES of clusters.py, and no window counts that."""

Json = dict[str, Any]

_FROM_AGENT: Json = {"resource_api_version": "V3", "ads": {}}
_NAMED_SO = f"by metadata {SERVICE_METADATA}: <namespace>/<service> or by :authority <service>.<namespace>"
_GRPC: Json = {"name": "content-type", "string_match": {"prefix": "application/grpc"}}
_NAMED: Json = {"name": SERVICE_METADATA, "string_match": {"prefix": "/serving/"}}
_SENTENCE: Json = {"text_format_source": {"inline_string": "%LOCAL_REPLY_BODY%"}}
_TOO_LARGE = 413
_NOT_FOUND, _RESOURCE_EXHAUSTED = 5, 8  # gRPC's
_PATH = "the path is /serving/<namespace>/<service>/v2/..."


def listener(
    *, host: str, port: int, transport: Json | None = None, log: str = "", held_s: float = wake.HELD_S
) -> Json:
    """Return the listener on `host`:`port` that routes by the scopes which the agent sends.

    Args:
        transport: its TLS; None for plain HTTP.
        log: path of its access log; empty for none.
        held_s: how long requests wait for a service that is asleep.
    """
    address = {"socket_address": {"address": host, "port_value": port}}
    return _listener("gateway", address, transport or {}, log, held_s)


def own_listener(socket: str, *, log: str = "", held_s: float = wake.HELD_S) -> Json:
    """Return the same on a Unix socket without TLS, for the control plane of this machine."""
    return _listener("gateway-own", {"pipe": {"path": socket, "mode": 0o600}}, {}, log, held_s)


def _listener(name: str, address: Json, transport: Json, log: str, held_s: float) -> Json:
    manager = {**_manager(held_s), **({"access_log": access_log(log)} if log else {})}
    return {
        "name": name,
        "address": address,
        "enable_reuse_port": False,  # else a second gateway would share the port instead of failing
        "per_connection_buffer_limit_bytes": CONNECTION_BUFFER_BYTES,
        "filter_chains": [
            {
                **transport,
                "filters": [
                    {"name": "envoy.filters.network.http_connection_manager", "typed_config": manager},
                ],
            }
        ],
    }


def _manager(held_s: float) -> Json:
    return {
        "@type": MANAGER,
        "stat_prefix": STAT_PREFIX,
        "codec_type": "AUTO",
        "early_header_mutation_extensions": [name_by_metadata_or_path(removed=access.OURS)],
        "scoped_routes": {
            "name": STAT_PREFIX,
            "scope_key_builder": scope_key(),
            "rds_config_source": _FROM_AGENT,
            "scoped_rds": {"scoped_rds_config_source": _FROM_AGENT},
        },
        "http_filters": [
            name_by_host(),
            wake.routes_filter(),
            cors.cors_filter(),
            *access.filters(),
            *limits.filters(),
            *wake.filters(held_s),
            *http_filters(),
        ],
        "server_name": "fairlead",
        # Every client is a stranger, one on this machine too: no x-envoy-... header of theirs may change timeouts or
        # retries. Envoy's own list of trusted networks is replaced by an empty one.
        "use_remote_address": True,
        "internal_address_config": {"cidr_ranges": [{"address_prefix": "255.255.255.255", "prefix_len": 32}]},
        "generate_request_id": True,
        "preserve_external_request_id": True,
        "always_set_request_id_in_response": True,
        "strip_any_host_port": True,
        "normalize_path": True,
        "merge_slashes": True,
        "path_with_escaped_slashes_action": "REJECT_REQUEST",
        # A model may take long, but a client that stalls for an hour is gone.
        "stream_idle_timeout": "3600s",
        "request_headers_timeout": "10s",
        "common_http_protocol_options": {"idle_timeout": "3600s"},
        "http2_protocol_options": {
            "max_concurrent_streams": MAX_STREAMS,
            "initial_stream_window_size": STREAM_WINDOW_BYTES,
            "initial_connection_window_size": CONNECTION_WINDOW_BYTES,
        },
        "local_reply_config": _local_replies(held_s),
    }


def _local_replies(held_s: float) -> Json:
    """Return the format of Envoy's own answers: V2's error object, for gRPC the plain sentence."""
    refusals, for_a_time = [*access.refusals(), *limits.refusals()], list(limits.refusals_for_a_time())
    asleep = (wake.too_many(), wake.too_long(held_s))
    return {
        "mappers": [
            _unknown(f"no service of the name in {SERVICE_METADATA}", _GRPC, _NAMED),
            _unknown(f"no service is named; name it {_NAMED_SO}", _GRPC),
            _unknown(f"no service of that name; {_PATH}", _NAMED),
            _unknown(f"no service is named; {_PATH}"),
            *(_waited(*cause, *headers) for cause in asleep for headers in ([_GRPC], [])),
            *_failed(),
            *(_refused_for_a_time(*refusal, _GRPC) for refusal in for_a_time),
            *(_refused_for_a_time(*refusal) for refusal in for_a_time),
            *(_refused(*refusal, _GRPC) for refusal in refusals),
            *(_refused(*refusal) for refusal in refusals),
            {"filter": {"header_filter": {"header": _GRPC}}, "body_format_override": _SENTENCE},
            _short_of_memory(),
            _healthy(),
        ],
        "body_format": {
            "json_format": {"error": "%LOCAL_REPLY_BODY%"},
            "content_type": "application/json",
        },
    }


def _refused(cause: Json, status: int, sentence: str, *headers: Json) -> Json:
    """Return the answer to callers refused for this cause, of requests with these headers."""
    found = [cause, *({"header_filter": {"header": header}} for header in headers)]
    said: Json = {
        "filter": {"and_filter": {"filters": found}} if headers else cause,
        "status_code": status,
        "body": {"inline_string": sentence},
    }
    if not headers:
        return said
    unknown_to_envoy = [_status(_RESOURCE_EXHAUSTED)] if status == _TOO_LARGE else []
    return {**said, "headers_to_add": unknown_to_envoy, "body_format_override": _SENTENCE}


def _refused_for_a_time(cause: Json, status: int, sentence: str, until: Json, *headers: Json) -> Json:
    """Return the same with `Retry-After`, for callers whose quota or limit of rows is used up."""
    added = [until, *([_status(_RESOURCE_EXHAUSTED)] if headers else [])]
    return {**_refused(cause, status, sentence, *headers), "headers_to_add": added}


def _waited(cause: Json, status: int, sentence: str, *headers: Json) -> Json:
    """Return the answer to requests of a service that is asleep and stays so, with `Retry-After`."""
    found = {"and_filter": {"filters": [cause, wake.is_busy()]}}
    return {**_refused(found, status, sentence, *headers), "headers_to_add": [wake.retry_after()]}


def _failed() -> Iterator[Json]:
    """Yield the answers to requests that waited for a replica which could not be started."""
    cause, sentence = wake.failed()
    for headers in ([_GRPC], []):
        found = [cause, {"response_flag_filter": {"flags": ["UH"]}}]
        found += [{"header_filter": {"header": header}} for header in headers]
        body = {"text_format_source": {"inline_string": sentence}} if headers else {"json_format": {"error": sentence}}
        yield {
            "filter": {"and_filter": {"filters": found}},
            "headers_to_add": [wake.retry_after()],
            "body_format_override": body,
        }


def _short_of_memory() -> Json:
    """Return the answer to requests under way that send more data than memory is left for.

    Envoy reports it as 500, and nothing else of its own is: a 503 would mean that a retry is safe.
    """
    is_500 = {"op": "EQ", "value": {"default_value": 500, "runtime_key": "fairlead.short_of_memory"}}
    return {
        "filter": {"status_code_filter": {"comparison": is_500}},
        "status_code": 503,
        "body": {"inline_string": "the gateway is short of memory; try again soon"},
    }


def _healthy() -> Json:
    """Return the answer to probes of a service that is asleep (routes.py), which is JSON already."""
    is_200 = {"op": "EQ", "value": {"default_value": 200, "runtime_key": "fairlead.healthy"}}
    is_get = {"header": {"name": ":method", "string_match": {"exact": "GET"}}}
    return {
        "filter": {
            "and_filter": {"filters": [{"status_code_filter": {"comparison": is_200}}, {"header_filter": is_get}]}
        },
        "body_format_override": {**_SENTENCE, "content_type": "application/json"},
    }


def _unknown(sentence: str, *headers: Json) -> Json:
    """Return the answer to requests with these headers of which no service is found."""
    found: list[Json] = [{"response_flag_filter": {"flags": ["NR"]}}]
    found += [{"header_filter": {"header": header}} for header in headers]
    said: Json = {
        "filter": {"and_filter": {"filters": found}} if headers else found[0],
        "body": {"inline_string": sentence},
    }
    if _GRPC not in headers:
        return said
    return {**said, "headers_to_add": [_status(_NOT_FOUND)], "body_format_override": _SENTENCE}


def _status(code: int) -> Json:
    """Return the header of a gRPC status."""
    return {"header": {"key": "grpc-status", "value": str(code)}, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}
