"""What the API server's answers become, without a cluster."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from common.errors import Conflict, InvalidInput, NotPermitted, Unavailable
from integrations.clusters.kubernetes.api.client import Api
from integrations.clusters.kubernetes.api.errors import ManagedElsewhere
from integrations.clusters.kubernetes.api.resource_types import CONFIG_MAP
from tests.integrations._support.api_servers import api_server, kubeconfig
from tests.servers.parts import free_port

Server = Callable[[int, str], Path]
ACCOUNT = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "digits", "namespace": "default"}}


@pytest.fixture
def answering(tmp_path: Path) -> Iterator[Server]:
    """Give a maker of API servers that have one answer for everything."""
    with ExitStack() as stack:

        def make(status: int, sentence: str) -> Path:
            return stack.enter_context(api_server(tmp_path, lambda asked: asked.say(status, {"message": sentence})))

        yield make


def test_a_server_that_is_away_is_unavailable(tmp_path: Path) -> None:
    api = Api(kubeconfig(tmp_path, free_port()))
    with pytest.raises(Unavailable, match="does not answer"):
        api.get(CONFIG_MAP, "default", "x")
    api.close()


def test_a_kubeconfig_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="does not say how to reach"):
        Api(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("status", "sentence", "error"),
    [
        pytest.param(403, "digits is forbidden", NotPermitted, id="a role that is missing"),
        pytest.param(409, "the object has been modified", Conflict, id="a stale resourceVersion"),
        pytest.param(409, 'Apply failed with 1 conflict: conflict with "x": .spec.a', ManagedElsewhere, id="a field"),
        pytest.param(422, "spec.a is required", InvalidInput, id="a manifest that is not valid"),
        pytest.param(429, "too many requests", Unavailable, id="a server that has too much to do"),
        pytest.param(500, "etcdserver: request timed out", Unavailable, id="a server in trouble"),
        pytest.param(
            500, "failed to create typed patch object: .a: field not declared", InvalidInput, id="no such field"
        ),
    ],
)
def test_a_refusal_is_told_in_the_servers_words(
    status: int, sentence: str, error: type[Exception], answering: Server
) -> None:
    api = Api(answering(status, sentence))
    with pytest.raises(error) as refused:
        api.apply(ACCOUNT)
    assert type(refused.value) is error
    assert sentence in str(refused.value)
    api.close()
