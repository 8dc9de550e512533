"""Envoy Gateway's access log for usage: what its Envoys send to the collector, by OTLP. Pure.

The Gateway and its EnvoyProxy are the operator's: this is the part of `spec.telemetry.accessLog` that the documentation
gives. Who called is in the metadata that the check of tokens writes, which no client can: headers of requests that the
gateway refuses, and of public services, are the client's own. Route and backend are in metadata of Envoy Gateway's.
"""

from integrations.clusters.kubernetes.manifests.names import Manifest

TOKENS = "envoy.filters.http.jwt_authn:fairlead"
"""Where verified claims are: the filter, and the provider of `routes.security_policy`."""
_ROUTE = "xds.route_metadata.filter_metadata['envoy-gateway'].resources[0]"
_BACKEND = "xds.upstream_host_locality_metadata.filter_metadata['envoy-gateway'].resources[0]"
_LONGEST_PATH, _LONGEST_ROWS = 200, 20

FIELDS = {
    "time": "%START_TIME%",
    "namespace": f"%CEL({_ROUTE}.namespace)%",
    "route": f"%CEL({_ROUTE}.name)%",
    "backend": f"%CEL({_BACKEND}.name)%",
    "key": f"%DYNAMIC_METADATA({TOKENS}:sub)%",
    "token_id": f"%DYNAMIC_METADATA({TOKENS}:jti)%",
    "team": f"%DYNAMIC_METADATA({TOKENS}:team)%",
    "path": f"%PATH(NQ:PATH):{_LONGEST_PATH}%",
    "status": "%RESPONSE_CODE%",
    "grpc_status": "%GRPC_STATUS_NUMBER%",
    "bytes_in": "%BYTES_RECEIVED%",
    "bytes_out": "%BYTES_SENT%",
    "model_us": "%COMMON_DURATION(US_TX_BEG:US_RX_END:us)%",
    "attempts": "%UPSTREAM_REQUEST_ATTEMPT_COUNT%",
    "rows": f"%RESP(fairlead-rows):{_LONGEST_ROWS}%",
    "grpc_rows": f"%TRAILER(fairlead-rows):{_LONGEST_ROWS}%",
}
"""As on one machine (`local.envoy.access_log`), but for `namespace` and `route`, which are the route's, and `backend`,
the name of the Service that it chose. Envoy writes `-` for what is not there."""


def settings(backend: Manifest, token: str) -> Manifest:
    """Return the entry of `spec.telemetry.accessLog.settings`.

    Args:
        backend: the reference to the collector's Service.
        token: what the collector knows its callers by.
    """
    headers = [{"name": "authorization", "value": f"Bearer {token}"}]
    sink = {"type": "OpenTelemetry", "openTelemetry": {"backendRefs": [backend], "headers": headers}}
    return {"type": "Route", "format": {"type": "JSON", "json": {**FIELDS}}, "sinks": [sink]}
