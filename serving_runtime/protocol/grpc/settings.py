"""How the gRPC endpoint treats connections; plain values, so that the command line is read without grpcio."""

from dataclasses import dataclass

from serving_runtime.protocol.tls import TlsFiles

COMPRESSION_LEVELS = ("none", "low", "medium", "high")


@dataclass(frozen=True, slots=True)
class GrpcSettings:
    """Defaults are Triton's.

    Attributes:
        max_message_bytes: of one request.
        tls: None for plain text.
        compression_level: of answers, one of COMPRESSION_LEVELS; for clients that take it.
        keepalive_time_ms: after so long a silence of the client a ping asks whether it is there.
        min_recv_ping_interval_ms: clients that ping without data more often strike.
        max_connection_age_ms, max_connection_age_grace_ms: when a client is told to connect anew, and how much later
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
