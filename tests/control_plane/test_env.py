"""Settings from the environment: defaults, secrets from files, and refusals that say what is expected."""

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from control_plane import env


def test_an_empty_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_X", "")
    assert env.text("FAIRLEAD_X", "default") == "default"


def test_a_secret_is_read_from_its_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s3cret\n")
    monkeypatch.setenv("FAIRLEAD_X_FILE", str(tmp_path / "secret"))
    assert env.secret("FAIRLEAD_X") == "s3cret"


def test_a_secret_file_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FAIRLEAD_X_FILE", str(tmp_path / "none"))
    with pytest.raises(ImproperlyConfigured, match=r"FAIRLEAD_X_FILE points to .*none, which cannot be read"):
        env.secret("FAIRLEAD_X")


def test_a_secret_given_twice_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_X", "a")
    monkeypatch.setenv("FAIRLEAD_X_FILE", "b")
    with pytest.raises(ImproperlyConfigured, match="both set"):
        env.secret("FAIRLEAD_X")


def test_a_secret_that_must_be_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAIRLEAD_X", raising=False)
    with pytest.raises(ImproperlyConfigured, match="FAIRLEAD_X is not set; set it, or FAIRLEAD_X_FILE"):
        env.secret("FAIRLEAD_X", required=True)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param("1", True, id="1 is true"),
        pytest.param("ON", True, id="case does not matter"),
        pytest.param("no", False, id="no is false"),
        pytest.param("", True, id="empty is the default"),
    ],
)
def test_a_flag(monkeypatch: pytest.MonkeyPatch, value: str, expected: bool) -> None:
    monkeypatch.setenv("FAIRLEAD_X", value)
    assert env.flag("FAIRLEAD_X", default=True) is expected


def test_a_flag_that_is_no_truth_value_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_X", "maybe")
    with pytest.raises(ImproperlyConfigured, match="FAIRLEAD_X is 'maybe'; expected one of 1, 0"):
        env.flag("FAIRLEAD_X", default=True)


@pytest.mark.parametrize("value", ["-1", "ten", "1.5", "0"])
def test_a_number_that_is_too_small_or_none_is_refused(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("FAIRLEAD_X", value)
    with pytest.raises(ImproperlyConfigured, match="whole number of at least 1"):
        env.integer("FAIRLEAD_X", 5, minimum=1)


def test_a_number_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_X", "100")
    with pytest.raises(ImproperlyConfigured, match="whole number of at least 0 and at most 99"):
        env.integer("FAIRLEAD_X", 5, maximum=99)


def test_names_are_split_at_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_X", "a.example, b.example,")
    assert env.names("FAIRLEAD_X", []) == ["a.example", "b.example"]


@pytest.mark.parametrize(
    ("value", "origin", "host"),
    [
        pytest.param("", "http://127.0.0.1:8080", "127.0.0.1", id="unset"),
        pytest.param("https://models.example.com/", "https://models.example.com", "models.example.com", id="a name"),
        pytest.param("https://[2001:db8::1]:8443", "https://[2001:db8::1]:8443", "[2001:db8::1]", id="an IPv6 address"),
    ],
)
def test_an_origin_and_its_host(monkeypatch: pytest.MonkeyPatch, value: str, origin: str, host: str) -> None:
    monkeypatch.setenv("FAIRLEAD_X", value)
    found = env.origin("FAIRLEAD_X", "http://127.0.0.1:8080")
    assert (found, env.host_of(found)) == (origin, host)


def test_hosts_of_ipv6_are_as_in_a_host_header(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_X", "localhost, fd00::7,[fd00::8],10.0.0.7,fairlead.default.svc")
    assert env.hosts("FAIRLEAD_X", []) == ["localhost", "[fd00::7]", "[fd00::8]", "10.0.0.7", "fairlead.default.svc"]


@pytest.mark.parametrize("value", ["fd00::7:8082", "[fd00::7]:8082"])
def test_an_address_of_ipv6_may_be_without_brackets(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """A pod's address is put before the port as it is, of either family."""
    monkeypatch.setenv("FAIRLEAD_X", value)
    assert env.address("FAIRLEAD_X") == ("fd00::7", 8082)


@pytest.mark.parametrize("value", ["models.example.com", "ftp://models.example.com", "https://", "https://h/fairlead"])
def test_what_is_no_origin_is_refused(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("FAIRLEAD_X", value)
    with pytest.raises(ImproperlyConfigured, match=r"FAIRLEAD_X is .+; expected https://HOST or"):
        env.origin("FAIRLEAD_X", "")


def test_a_web_address_may_have_a_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_X", "https://metrics.example.com/prometheus/")
    assert env.web_address("FAIRLEAD_X") == "https://metrics.example.com/prometheus"
    monkeypatch.delenv("FAIRLEAD_X")
    assert env.web_address("FAIRLEAD_X") == ""


@pytest.mark.parametrize(
    "value",
    ["metrics:9090", "ftp://metrics", "http://a:secret@metrics", "http://m/?a=1", "http://", "http://m:x", "http://[m"],
)
def test_another_web_address_is_refused_without_showing_a_password(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("FAIRLEAD_X", value)
    with pytest.raises(ImproperlyConfigured, match="FAIRLEAD_X is not http://HOST") as raised:
        env.web_address("FAIRLEAD_X")
    assert "secret" not in str(raised.value)


def test_addresses_of_sinks_are_refused_without_their_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    assert env.url("FAIRLEAD_X") == ""
    assert env.syslog("FAIRLEAD_X") is None
    monkeypatch.setenv("FAIRLEAD_X", "https://u:password@a")
    with pytest.raises(ImproperlyConfigured) as refused:
        env.url("FAIRLEAD_X")
    assert "password" not in str(refused.value)
    with pytest.raises(ImproperlyConfigured, match=r"FAIRLEAD_X: the address is .* expected udp://, tcp:// or tls://"):
        env.syslog("FAIRLEAD_X")
    monkeypatch.setenv("FAIRLEAD_X", "https://a/b?token=t")
    assert env.url("FAIRLEAD_X") == "https://a/b?token=t"


def test_programs_are_absolute_paths_and_an_empty_list_is_not_an_unset_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAIRLEAD_X", raising=False)
    assert env.programs("FAIRLEAD_X") is None
    monkeypatch.setenv("FAIRLEAD_X", "")
    assert env.programs("FAIRLEAD_X") == ()
    monkeypatch.setenv("FAIRLEAD_X", "/usr/bin/aws, /opt/plugin")
    assert env.programs("FAIRLEAD_X") == ("/usr/bin/aws", "/opt/plugin")
    for wrong in ("aws", "./aws", "/usr/bin/../aws", "/usr/bin/"):
        monkeypatch.setenv("FAIRLEAD_X", wrong)
        with pytest.raises(ImproperlyConfigured, match="expected absolute paths"):
            env.programs("FAIRLEAD_X")


@pytest.mark.parametrize("value", ["warm", "a/b/c", "Default/warm", "default/", "/warm"])
def test_a_model_pool_has_namespace_and_name(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("FAIRLEAD_X", value)
    with pytest.raises(ImproperlyConfigured, match="expected NAMESPACE/NAME of a model pool"):
        env.model_pool("FAIRLEAD_X")
    monkeypatch.setenv("FAIRLEAD_X", "default/warm")
    assert env.model_pool("FAIRLEAD_X") == "default/warm"
