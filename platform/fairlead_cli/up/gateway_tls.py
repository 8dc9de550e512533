"""TLS of the gateway on the command line: its flags, the variables they become, and the check before a start.

A flag wins over its variable. Web, worker and agent read the variables.
"""

import argparse
import subprocess
from collections.abc import Mapping
from pathlib import Path

from fairlead_cli.errors import CliError
from fairlead_cli.up import processes
from fairlead_cli.up.addresses import Address
from fairlead_cli.up.home import Home

TLS = "FAIRLEAD_GATEWAY_TLS"
CERTIFICATE = "FAIRLEAD_GATEWAY_CERTIFICATE"
KEY = "FAIRLEAD_GATEWAY_KEY"
CLIENT_CA = "FAIRLEAD_GATEWAY_CLIENT_CA"
CA = "FAIRLEAD_GATEWAY_CA"
VARIABLES = (TLS, CERTIFICATE, KEY, CLIENT_CA, CA)
_FILES = {"gateway_certificate": CERTIFICATE, "gateway_key": KEY, "gateway_client_ca": CLIENT_CA}
_TRUE, _FALSE = {"1", "true", "yes", "on"}, {"", "0", "false", "no", "off"}
_TIMEOUT_S = 30.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the gateway's TLS."""
    parser.add_argument(
        "--gateway-tls",
        action="store_true",
        help=f"the gateway speaks HTTPS, with a certificate that is made and renewed in the home ({TLS})",
    )
    parser.add_argument(
        "--gateway-certificate",
        type=Path,
        metavar="FILE",
        help=f"PEM of the gateway's certificate and its chain, taken up again when it changes ({CERTIFICATE})",
    )
    parser.add_argument("--gateway-key", type=Path, metavar="FILE", help=f"PEM of its private key ({KEY})")
    parser.add_argument(
        "--gateway-client-ca",
        type=Path,
        metavar="FILE",
        help=f"PEM of authorities; then every client needs a certificate of one of them ({CLIENT_CA})",
    )


def settings(options: argparse.Namespace, environ: Mapping[str, str], home: Home) -> dict[str, str]:
    """Return the variables of the gateway's TLS, empty ones where it speaks plain HTTP; CliError for a wrong one."""
    if (said := environ.get(TLS, "").lower()) not in _TRUE | _FALSE:
        raise CliError(f"{TLS} is {said!r}; expected true or false")
    files = {variable: getattr(options, name) or environ.get(variable, "") for name, variable in _FILES.items()}
    found = {variable: str(Path(file).absolute()) if file else "" for variable, file in files.items()}
    is_self_made = not found[CERTIFICATE] and not found[KEY]
    is_on = not is_self_made or options.gateway_tls or said in _TRUE
    authority = str(home.path / "tls" / "ca.crt") if is_on and is_self_made else environ.get(CA, "")
    return {**found, TLS: "true" if is_on else "", CA: authority}


def check(address: Address, variables: Mapping[str, str]) -> list[str]:
    """Return what clients have to know about the gateway's TLS, a self-made certificate being made where it is due.

    Raises:
        CliError: certificate, key or authorities cannot be used; one sentence.
    """
    if not variables[TLS] and not variables[CLIENT_CA]:
        return []
    arguments = ["-m", "integrations.clusters.local.tls", "--gateway-address", str(address)]
    try:
        done = processes.completed(arguments, variables, timeout_s=_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CliError(f"the gateway's certificate cannot be checked: {error}") from error
    if done.returncode:
        raise CliError((done.stderr.strip().splitlines() or ["the check of the certificate printed nothing"])[-1])
    return done.stdout.splitlines()


def warning(address: Address, variables: Mapping[str, str], public_url: str | None) -> str | None:
    """Return a sentence where requests and keys cross a network in plain text; None where they do not."""
    if address.is_loopback or variables[TLS] or (public_url or "").startswith("https:"):
        return None
    return (
        f"the gateway listens on {address} without TLS: requests and keys cross the network in plain text; "
        "--gateway-tls encrypts them"
    )
