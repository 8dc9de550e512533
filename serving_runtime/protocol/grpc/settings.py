"""Connection settings of the gRPC endpoint; plain values."""

from dataclasses import dataclass

from serving_runtime.protocol.tls import TlsFiles

COMPRESSION_LEVELS = ("none", "low", "medium", "high")


@dataclass(frozen=True, slots=True)
class GrpcSettings:
    """Defaults are Triton's.

    Attributes:
        max_message_bytes: limit of one request.
        tls: None for plain text.
        compression_level: of answers, one of COMPRESSION_LEVELS; for clients that accept it.
        keepalive_time_ms: silence of the client after which the server pings it.
        min_recv_ping_interval_ms: clients that ping more often without data get strikes.
        max_connection_age_ms, max_connection_age_grace_ms: age at which a client must reconnect, and how much later
            the connection is ended; None for never.
    """

    max_message_bytes: int = 64 * 1024 * 1024
    reuse_port: bool = False
    tls: TlsFiles | None = None
    compression_level: str = "none"
    keepalive_time_ms: int = 7_200_000
    keepalive_timeout_ms: int = 20_000
    keepalive_permit_without_calls: bool = False
    max_pings_without_data: int = 2
    min_recv_ping_interval_ms: int = 300_000
    max_ping_strikes: int = 2
    max_connection_age_ms: int | None = None
    max_connection_age_grace_ms: int | None = None
