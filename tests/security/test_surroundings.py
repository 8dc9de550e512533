"""What a model's process finds around it, and what its failures say of the machine: neither secrets nor folders."""

import sys
from pathlib import Path

import pytest
import yaml

from fairlead_cli.up.addresses import Address
from fairlead_cli.up.components import Inherited, components
from fairlead_cli.up.home import Home
from integrations.clusters.base import ReplicaPhase, without_folders
from integrations.clusters.local.runtime import environment
from tests.integrations._support.runtimes import RUNTIME, Cluster, until

COMPOSE = Path(__file__).parents[2] / "docker" / "compose.yaml"
SECRETS = {
    "FAIRLEAD_SECRET_KEY": "the-key-of-all",
    "FAIRLEAD_SECRET_KEY_FILE": "/run/secrets/key",
    "FAIRLEAD_DATABASE_URL": "postgres://fairlead:the-key-of-all@db/fairlead",
    "FAIRLEAD_OIDC_CLIENT_SECRET": "the-key-of-all",
    "FAIRLEAD_PROMETHEUS_TOKEN": "the-key-of-all",
    "POSTGRES_PASSWORD": "the-key-of-all",
    "PGPASSWORD": "the-key-of-all",
}


def test_a_replica_and_the_gateway_have_no_secret_and_a_failure_names_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    cluster = Cluster(tmp_path)
    try:
        cluster.start()
        cluster.apply(1, cluster.revision(1, 100))
        cluster.until_ready(1)
        for process in ("gateway", "default.digits-00001-0"):
            found = Path(f"/proc/{cluster.pid(process)}/environ").read_bytes()
            assert b"the-key-of-all" not in found
            assert b"/run/secrets" not in found
    finally:
        cluster.close()


def test_what_asks_a_model_has_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    assert not set(environment({}, is_code=False)) & set(SECRETS)
    assert environment({"POSTGRES_PASSWORD": "the model's own"}, is_code=True)["POSTGRES_PASSWORD"] == "the model's own"


@pytest.mark.parametrize("name", ["agent", "holder"])
def test_the_parents_of_models_are_started_without_secrets(tmp_path: Path, name: str) -> None:
    address = Address("127.0.0.1", 0)
    parts = components(
        Home(tmp_path), address, address, {**SECRETS, "FAIRLEAD_HOME": str(tmp_path)}, Inherited(8, 9, 10)
    )
    (part,) = [part for part in parts if part.name == name]
    assert not [each for each in part.environment if each.startswith("FAIRLEAD_") and each in SECRETS]


def test_with_compose_the_container_of_models_has_no_secret_and_no_socket_of_a_store() -> None:
    gateway = yaml.safe_load(COMPOSE.read_text())["services"]["gateway"]
    assert "env_file" not in gateway
    assert set(gateway["environment"]) == {
        "FAIRLEAD_EGRESS_ALLOWED_NETWORKS",
        "FAIRLEAD_MEMORY_LIMIT",
        "FAIRLEAD_MEMORY_RESERVE_MIB",
        "FAIRLEAD_SANDBOX",
        *(f"FAIRLEAD_GATEWAY_{name}" for name in ("URL", "TLS", "CERTIFICATE", "KEY", "CLIENT_CA")),
    }
    assert gateway["volumes"] == ["home:/var/lib/fairlead"]


def test_why_a_model_cannot_be_loaded_names_no_folder_of_the_machine(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    try:
        cluster.start(runtime=RUNTIME)
        cluster.apply(1, cluster.revision(1, 100, content=b"this is no model"))
        replica = until(
            lambda: next(
                (
                    each
                    for revision in cluster.observe().revisions
                    for each in revision.replicas
                    if each.phase is ReplicaPhase.BACKING_OFF and each.failure
                ),
                None,
            ),
            "the replica failed",
        )
        assert replica is not None
        assert replica.failure is not None
        said = " ".join((replica.message, replica.failure.message, *replica.failure.log))
        assert "model.onnx" in said
        for folder in (str(tmp_path), sys.prefix, f"{Path.home()}/"):
            assert folder not in said
    finally:
        cluster.close()


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("there is no model.onnx in /home/eva/.fairlead/cluster/repositories/a/1", "there is no model.onnx in …/1"),
        ("open('/tmp/x y/model.onnx') failed", "open('…/x y/model.onnx') failed"),
        ('File "/opt/fairlead/lib/a.py", line 3, in f', 'File "…/a.py", line 3, in f'),
        ("file:///var/lib/fairlead/artifacts/aaaa is not there", "…/aaaa is not there"),
        ("/srv/models/: denied", "…/models/: denied"),
        ("POST /v2/models/digits/infer", "POST /v2/models/digits/infer"),
        ("http://host/var/lib/x", "http://host/var/lib/x"),
        ("s3://bucket/home/x/y", "s3://bucket/home/x/y"),
        ("4/tmp/3 of a/home/b", "4/tmp/3 of a/home/b"),
    ],
)
def test_only_the_last_part_of_a_path_is_shown(said: str, shown: str) -> None:
    assert without_folders(said) == shown
