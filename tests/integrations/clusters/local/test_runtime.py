"""The environment of a runtime on this machine: as in its image, where nobody says otherwise."""

from pathlib import Path

import pytest

from integrations.clusters.local.runtime import IMAGE_ENVIRONMENT

DOCKERFILE = Path(__file__).parents[4] / "docker" / "Dockerfile"
TUNABLES = "GLIBC_TUNABLES"


def test_it_is_that_of_the_images():
    stage = DOCKERFILE.read_text().split(" AS runtime-base\n")[1].split("\nFROM ")[0]
    told = dict(line.removeprefix("ENV ").split("=", 1) for line in stage.splitlines() if line.startswith("ENV "))
    assert told == IMAGE_ENVIRONMENT


@pytest.mark.parametrize(
    ("agents", "own", "expected"),
    [
        pytest.param(None, None, IMAGE_ENVIRONMENT[TUNABLES], id="the image's"),
        pytest.param("glibc.malloc.perturb=0", None, "glibc.malloc.perturb=0", id="that of the platform"),
        pytest.param("glibc.malloc.perturb=0", "glibc.malloc.perturb=1", "glibc.malloc.perturb=1", id="the model's"),
    ],
)
def test_a_replica_has_it(cluster, monkeypatch, agents, own, expected):
    if agents is None:
        monkeypatch.delenv(TUNABLES, raising=False)
    else:
        monkeypatch.setenv(TUNABLES, agents)
    cluster.start()
    cluster.apply(1, cluster.revision(1, 100, env={} if own is None else {TUNABLES: own}))
    cluster.until_ready(1)
    environ = Path(f"/proc/{cluster.pid('default.digits-00001-0')}/environ").read_bytes()
    assert f"{TUNABLES}={expected}".encode() in environ.split(b"\0")
