"""Flags of the gateway's TLS: what they become, and what is refused before anything starts."""

import argparse
from pathlib import Path

import pytest

from fairlead_cli.errors import CliError
from fairlead_cli.up import gateway_tls
from fairlead_cli.up.addresses import Address
from fairlead_cli.up.components import environment
from fairlead_cli.up.home import Home

LOOPBACK, EVERYWHERE = Address("127.0.0.1", 8090), Address("0.0.0.0", 8090)


def settings(home: Home, *flags: str, **environ: str) -> dict[str, str]:
    parser = argparse.ArgumentParser()
    gateway_tls.add_arguments(parser)
    return gateway_tls.settings(parser.parse_args(flags), environ, home)


def checked(home: Home, *flags: str, **environ: str) -> list[str]:
    variables = environment(home, url="http://a:1", gateway_url="https://127.0.0.1:8090")
    return gateway_tls.check(LOOPBACK, variables | settings(home, *flags, **environ))


def test_without_flags_and_variables_the_gateway_speaks_plain_http(home: Home) -> None:
    assert set(settings(home).values()) == {""}
    assert checked(home) == []


@pytest.mark.parametrize("way", [(("--gateway-tls",), {}), ((), {"FAIRLEAD_GATEWAY_TLS": "1"})])
def test_flag_or_variable_makes_a_certificate(way: tuple[tuple[str, ...], dict[str, str]], home: Home) -> None:
    flags, environ = way
    assert settings(home, *flags, **environ)["FAIRLEAD_GATEWAY_CA"] == str(home.path / "tls" / "ca.crt")
    first, second = checked(home, *flags, **environ)
    assert first.startswith("self-made, valid until ")
    assert second == f"clients trust {home.path / 'tls' / 'ca.crt'}"
    assert (home.path / "tls" / "gateway.key").stat().st_mode & 0o777 == 0o600


def test_a_given_pair_is_used_by_its_whole_path_and_a_flag_wins_over_a_variable(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked(home, "--gateway-tls")
    monkeypatch.chdir(home.path)
    given = ("--gateway-certificate", "tls/gateway.crt", "--gateway-key", "tls/gateway.key")
    found = settings(home, *given, FAIRLEAD_GATEWAY_CERTIFICATE="/other.crt")
    assert found["FAIRLEAD_GATEWAY_CERTIFICATE"] == str(home.path / "tls" / "gateway.crt")
    assert (found["FAIRLEAD_GATEWAY_TLS"], found["FAIRLEAD_GATEWAY_CA"]) == ("true", "")
    (line,) = checked(home, *given)
    assert line.startswith(f"{home.path / 'tls' / 'gateway.crt'}, valid until ")


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--gateway-certificate", "/none.crt"), "--gateway-certificate is given without --gateway-key"),
        (("--gateway-key", "/none.key"), "--gateway-key is given without --gateway-certificate"),
        (("--gateway-certificate", "/none.crt", "--gateway-key", "/none.key"), "/none.crt cannot be read"),
        (("--gateway-client-ca", "/none.pem"), "--gateway-client-ca is for a gateway with TLS"),
        (("--gateway-tls", "--gateway-client-ca", "/none.pem"), "/none.pem cannot be read"),
    ],
)
def test_what_cannot_be_used_is_one_sentence(flags: tuple[str, ...], sentence: str, home: Home) -> None:
    with pytest.raises(CliError, match=sentence):
        checked(home, *flags)


def test_a_variable_that_is_neither_true_nor_false_is_one_sentence(home: Home) -> None:
    with pytest.raises(CliError, match="FAIRLEAD_GATEWAY_TLS is 'ture'"):
        settings(home, FAIRLEAD_GATEWAY_TLS="ture")


def test_a_network_without_tls_is_warned_about(home: Home) -> None:
    plain, tls = settings(home), settings(home, "--gateway-tls")
    assert "in plain text" in str(gateway_tls.warning(EVERYWHERE, plain, None))
    assert gateway_tls.warning(LOOPBACK, plain, None) is None
    assert gateway_tls.warning(EVERYWHERE, tls, None) is None
    assert gateway_tls.warning(EVERYWHERE, plain, "https://models.example.com") is None
    assert gateway_tls.warning(EVERYWHERE, plain, "http://models.example.com") is not None
