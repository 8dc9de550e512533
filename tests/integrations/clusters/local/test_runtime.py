"""The environment of a runtime on this machine: as in its image, where nobody says otherwise."""

from pathlib import Path

import pytest

from integrations.clusters.local.runtime import IMAGE_ENVIRONMENT, INHERITED, INHERITED_FAMILIES, inherited

DOCKERFILE = Path(__file__).parents[4] / "docker" / "Dockerfile"
TUNABLES = "GLIBC_TUNABLES"


def test_it_is_that_of_the_images():
    stage = DOCKERFILE.read_text().split(" AS runtime-base\n")[1].split("\nFROM ")[0]
    told = dict(line.removeprefix("ENV ").split("=", 1) for line in stage.splitlines() if line.startswith("ENV "))
    assert told == IMAGE_ENVIRONMENT


@pytest.mark.parametrize(
    ("agents", "expected"),
    [
        pytest.param(None, IMAGE_ENVIRONMENT[TUNABLES], id="the image's"),
        pytest.param("glibc.malloc.perturb=0", "glibc.malloc.perturb=0", id="that of the platform"),
    ],
)
def test_a_replica_has_it_whatever_its_model_asks_for(cluster, monkeypatch, agents, expected):
    if agents is None:
        monkeypatch.delenv(TUNABLES, raising=False)
    else:
        monkeypatch.setenv(TUNABLES, agents)
    cluster.start()
    cluster.apply(1, cluster.revision(1, 100, env={TUNABLES: "glibc.malloc.perturb=1", "OMP_NUM_THREADS": "3"}))
    cluster.until_ready(1)
    environ = Path(f"/proc/{cluster.pid('default.digits-00001-0')}/environ").read_bytes().split(b"\0")
    assert f"{TUNABLES}={expected}".encode() in environ
    assert b"OMP_NUM_THREADS=3" in environ


@pytest.mark.parametrize(
    ("name", "value", "is_inherited"),
    [
        pytest.param("PATH", "/usr/bin", True, id="where programs are"),
        pytest.param("OMP_NUM_THREADS", "4", True, id="threads"),
        pytest.param("CUDA_VISIBLE_DEVICES", "1", True, id="devices"),
        pytest.param("LD_LIBRARY_PATH", "/opt/cuda/lib64", True, id="the operator's libraries"),
        pytest.param("FAIRLEAD_HOME", "/home/f", True, id="whose it is"),
        pytest.param("HTTPS_PROXY", "http://proxy:3128", True, id="a proxy"),
        pytest.param("HTTPS_PROXY", "http://user:word@proxy:3128", False, id="a proxy with a password"),
        pytest.param("OTEL_SERVICE_NAME", "s", True, id="traces"),
        pytest.param("OTEL_EXPORTER_OTLP_HEADERS", "api-key=s", False, id="what traces are sent with"),
        pytest.param("FAIRLEAD_SECRET_KEY", "s", False, id="the secret key"),
        pytest.param("FAIRLEAD_SECRET_KEY_FILE", "/f", False, id="where the secret key is"),
        pytest.param("FAIRLEAD_DATABASE_URL", "postgres://u:p@h/d", False, id="the database"),
        pytest.param("AWS_SECRET_ACCESS_KEY", "s", False, id="the cloud"),
        pytest.param("PYTHONPATH", "/srv", False, id="what Python imports"),
    ],
)
def test_what_a_process_gets_of_the_platforms_environment(name, value, is_inherited):
    assert inherited({name: value}) == ({name: value} if is_inherited else {})


def test_the_page_about_settings_lists_it():
    page = (DOCKERFILE.parents[1] / "docs" / "reference" / "settings.md").read_text()
    families = {f"{family}…" for family in INHERITED_FAMILIES}
    names = {name for name in INHERITED if not name.startswith("COVERAGE_") and name.isupper()}
    assert [each for each in sorted(names | families) if f"`{each}`" not in page] == []
