"""Check of the gateway's TLS before it starts: prints what clients have to know, or ends with one sentence."""

import argparse
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

from integrations.clusters.local.tls import BadCertificateError, GatewayTls


def main() -> int:
    """Return the exit code: 0 where the gateway can start, 1 with the reason on the error output."""
    parser = argparse.ArgumentParser(prog="python -m integrations.clusters.local.tls", description="Checks TLS.")
    parser.add_argument("--gateway-address", required=True, help="host:port that the gateway listens on")
    host = parser.parse_args().gateway_address.rpartition(":")[0].strip("[]")
    try:
        tls = GatewayTls.of(os.environ, home=Path(os.environ.get("FAIRLEAD_HOME") or ".fairlead"), host=host)
        if tls is None:
            return 0
        found = tls.read(datetime.now(UTC)).certificate
    except BadCertificateError as error:
        print(error, file=sys.stderr)  # noqa: T201 - a command's answer
        return 1
    source = "self-made" if tls.self_made is not None else str(tls.certificate)
    print(f"{source}, valid until {found.expires_at:%Y-%m-%d}, SHA-256 {found.fingerprint}")  # noqa: T201
    if tls.self_made is not None:
        print(f"clients trust {tls.self_made.authority}")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
