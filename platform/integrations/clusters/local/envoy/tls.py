"""TLS at the gateway's listener, and its secrets, which the agent sends (SDS). Pure.

Certificates change as resources of their own: open connections go on, and new ones get the new certificate.
"""

from typing import Any

CERTIFICATE, CLIENT_AUTHORITIES = "gateway-certificate", "client-authorities"
"""Names of the secrets."""

_TLS = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3"
_HANDSHAKE_S = 10

Json = dict[str, Any]


def over_tls(*, client_certificates: bool) -> Json:
    """Return the fields of a filter chain whose connections are TLS 1.2 or later; HTTP/2 and gRPC are found by ALPN.

    Args:
        client_certificates: connections of clients without a valid one are refused.
    """
    common: Json = {
        "tls_params": {"tls_minimum_protocol_version": "TLSv1_2"},
        "alpn_protocols": ["h2", "http/1.1"],
        "tls_certificate_sds_secret_configs": [_from_agent(CERTIFICATE)],
    }
    if client_certificates:
        common["validation_context_sds_secret_config"] = _from_agent(CLIENT_AUTHORITIES)
    context = {
        "@type": f"{_TLS}.DownstreamTlsContext",
        "common_tls_context": common,
        "require_client_certificate": client_certificates,
    }
    return {
        "transport_socket": {"name": "envoy.transport_sockets.tls", "typed_config": context},
        "transport_socket_connect_timeout": f"{_HANDSHAKE_S}s",
    }


def certificate(chain: bytes, key: bytes) -> Json:
    """Return the secret of a certificate with its chain and of its key, in PEM."""
    pair = {"certificate_chain": _text(chain), "private_key": _text(key)}
    return {"@type": f"{_TLS}.Secret", "name": CERTIFICATE, "tls_certificate": pair}


def client_authorities(content: bytes) -> Json:
    """Return the secret of the authorities of clients, in PEM."""
    return {
        "@type": f"{_TLS}.Secret",
        "name": CLIENT_AUTHORITIES,
        "validation_context": {"trusted_ca": _text(content)},
    }


def _text(pem: bytes) -> Json:
    return {"inline_string": pem.decode("utf-8", "replace")}


def _from_agent(name: str) -> Json:
    return {"name": name, "sds_config": {"resource_api_version": "V3", "ads": {}}}
