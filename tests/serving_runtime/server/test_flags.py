"""Every flag of Triton's either works here or is refused by its name."""

import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from serving_runtime.server import options
from serving_runtime.server.refused_flags import REFUSED

TRITON = re.findall(
    r"--[a-z0-9-]+",
    """
--allow-client-shm --allow-cpu-metrics --allow-gpu-metrics --allow-grpc --allow-http --allow-metrics --allow-sagemaker
--allow-vertex-ai --backend-config --backend-directory --buffer-manager-thread-count --cache-config --cache-directory
--cuda-memory-pool-byte-size --cuda-virtual-address-size --disable-auto-complete-config --enable-peer-access
--exit-on-error --exit-timeout-secs --grpc-address --grpc-header-forward-pattern
--grpc-http2-max-ping-strikes --grpc-http2-max-pings-without-data --grpc-http2-min-recv-ping-interval-without-data
--grpc-infer-allocation-pool-size --grpc-infer-response-compression-level --grpc-infer-thread-count
--grpc-keepalive-permit-without-calls --grpc-keepalive-time --grpc-keepalive-timeout --grpc-max-connection-age
--grpc-max-connection-age-grace --grpc-max-response-pool-size --grpc-port --grpc-restricted-protocol
--grpc-root-cert --grpc-server-cert --grpc-server-key --grpc-use-ssl --grpc-use-ssl-mutual --help --host-policy
--http-address --http-header-forward-pattern --http-max-input-size --http-port --http-restricted-api
--http-thread-count --id --load-model --log-error --log-file --log-format --log-info --log-verbose --log-warning
--metrics-address --metrics-config --metrics-interval-ms --metrics-port --min-supported-compute-capability
--model-config-name --model-control-mode --model-load-gpu-limit --model-load-retry-count --model-load-thread-count
--model-namespacing --model-repository --model-store --pinned-memory-pool-byte-size --rate-limit
--rate-limit-resource --repoagent-directory --repository-poll-secs --response-cache-byte-size --reuse-grpc-port
--reuse-http-port --sagemaker-port --sagemaker-safe-port-range --sagemaker-thread-count --strict-model-config
--strict-readiness --trace-config --trace-count --trace-file --trace-level --trace-log-frequency --trace-rate
--vertex-ai-default-model --vertex-ai-port --vertex-ai-thread-count
""",
)


def offered() -> set[str]:
    flags = {flag for action in options._parser()._actions for flag in action.option_strings if flag.startswith("--")}
    return flags - set(REFUSED)


@pytest.mark.parametrize("flag", TRITON)
def test_every_flag_of_tritons_works_or_is_refused_by_name(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    if flag in offered():
        return
    with pytest.raises(SystemExit) as caught:
        options.parse(["--model-repository=models", f"{flag}=1"])
    assert caught.value.code == 1
    told = capsys.readouterr().err
    assert told == f"fairlead-serve: {flag} is not supported: {REFUSED[flag]}; see --help\n"


def test_nothing_is_refused_that_triton_does_not_have() -> None:
    assert set(REFUSED) - set(TRITON) == set()


def test_the_version_is_told_without_a_repository(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        options.parse(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"fairlead-serve {version('fairlead')}\n"


def test_a_flag_of_nobodys_is_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        options.parse(["--model-repository=models", "--mode=fast"])
    assert "unrecognized arguments: --mode=fast" in capsys.readouterr().err


def test_every_offered_flag_says_in_the_help_what_it_does() -> None:
    helps = {flag: action.help for action in options._parser()._actions for flag in action.option_strings}
    assert [flag for flag in offered() if not helps[flag]] == []


def test_the_table_of_flags_gives_each_a_line_in_the_docs() -> None:
    page = (Path(__file__).parents[3] / "docs" / "reference" / "serving-runtime.md").read_text()
    assert set(TRITON) - set(re.findall(r"`(--[a-z0-9-]+)`", page)) == set()


def test_a_server_begins_without_what_a_logger_posts_with() -> None:
    """It is a third of a start's imports, and six megabytes of each replica."""
    begun = "import serving_runtime.server.serve, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", begun], capture_output=True, text=True, timeout=60, check=True)
    assert "httpx" not in done.stdout.split()
