import json
from dataclasses import replace
from types import MappingProxyType

import pytest

from integrations.clusters.base import (
    Autoscaling,
    Component,
    Desired,
    DesiredCompanion,
    DesiredPredictor,
    DesiredRevision,
    HeaderMatch,
    Logged,
    Logger,
    MatchKind,
    Observed,
    ObservedReplica,
    ObservedRevision,
    ReplicaPhase,
    Resources,
    SecretKeyRef,
    SessionAffinity,
)
from integrations.clusters.local.documents import (
    cluster_status_from_json,
    cluster_status_to_json,
    observed_from_json,
    observed_to_json,
    order_from_json,
    order_to_json,
)
from integrations.clusters.local.files import DESIRED_SCHEMA, BadFileError, ClusterStatus, Order, read_json, write_json

REVISION = DesiredRevision(
    name="digits-00001",
    model_name="digits",
    model_version="1",
    artifact_uri="file:///a",
    artifact_digest="sha256:0",
    replicas=2,
    weight_percent=100,
    model_config={"dynamic_batching": {"preferred_batch_size": [4]}},
    env={"A": "b"},
    resources=Resources(0.5, 1 << 30),
    autoscaling=Autoscaling(4, {"concurrency": 7.5}),
    logger=Logger("http://receiver/", Logged.REQUEST),
)
OBSERVED = Observed(
    "default",
    "digits",
    3,
    (
        ObservedRevision(
            "a", 40, (ObservedReplica("a-0", ReplicaPhase.READY, 1, 5.5, "http://m", "why"),), "because", 7.5
        ),
        ObservedRevision("b", 60, match=(HeaderMatch("x-group", MatchKind.PREFIX, ("beta",)),)),
    ),
    "http://g",
    "sentence",
)


def through_json(value: dict[str, object]) -> dict[str, object]:
    return dict(json.loads(json.dumps(value)))


MATCH = (HeaderMatch("x-group", MatchKind.ANY_OF, ("beta", "in-house")),)


@pytest.mark.parametrize("deleted", [True, False])
def test_order_survives_its_file(deleted):
    affinity = SessionAffinity("digits-00001", cookie="session", cookie_ttl_s=60)
    order = Order(
        Desired("default", "digits", 7, (replace(REVISION, match=MATCH),), affinity=affinity, request_timeout_s=30),
        deleted=deleted,
    )
    assert order_from_json(through_json(order_to_json(order))) == order


def test_programs_survive_their_file_and_nothing_else_changes():
    program = DesiredPredictor("a@sha256:1", "v1", ("./a",), ("--port=$(PORT)",), ready_path="/ok", working_dir="/p/a")
    companion = DesiredCompanion(
        "b@sha256:2",
        1,
        command=("./b",),
        env={"A": "b"},
        secret_env={"TOKEN": SecretKeyRef("hub", "token")},
        resources=Resources(0.5, 1 << 20),
        working_dir="/p/b",
    )
    order = Order(Desired("default", "digits", 7, (replace(REVISION, custom=program, explainer=companion),)))
    written = order_to_json(order)
    assert order_from_json(through_json(written)) == order
    plain = order_to_json(Order(Desired("default", "digits", 7, (REVISION,))))
    assert [plain["revisions"][0][name] for name in ("custom", "transformer", "explainer")] == [None, None, None]
    for name in ("custom", "transformer", "explainer"):  # as an earlier release wrote it
        del plain["revisions"][0][name]
    assert order_from_json(plain).desired.revisions == (REVISION,)


def test_order_takes_read_only_mappings():
    frozen = replace(
        REVISION, env=MappingProxyType({"A": "b"}), model_config=MappingProxyType(dict(REVISION.model_config))
    )
    written = order_to_json(Order(Desired("default", "digits", 7, (frozen,))))
    assert order_from_json(through_json(written)).desired.revisions == (REVISION,)


def test_observation_survives_its_file():
    assert observed_from_json(through_json(observed_to_json(OBSERVED))) == OBSERVED


def test_cluster_status_survives_its_file():
    status = ClusterStatus(1.5, 42, "http://g", (Component("gateway", True, 3, "why"),))
    assert cluster_status_from_json(through_json(cluster_status_to_json(status))) == status


def test_fields_of_a_newer_writer_are_passed_over():
    value = observed_to_json(OBSERVED)
    value["colour"] = value["revisions"][0]["colour"] = value["revisions"][0]["replicas"][0]["colour"] = "green"
    assert observed_from_json(value) == OBSERVED


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("{", "x.json is not JSON", id="cut off"),
        pytest.param("[]", "x.json holds 'list'", id="another kind"),
        pytest.param(
            '{"schema": "fairlead.desired/v9"}', "'fairlead.desired/v9' where 'fairlead.desired/v1'", id="newer schema"
        ),
        pytest.param("\xff", "x.json is not JSON", id="no text"),
    ],
)
def test_bad_file_is_named(tmp_path, text, said):
    (tmp_path / "x.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(BadFileError, match=said):
        read_json(tmp_path / "x.json", DESIRED_SCHEMA)


@pytest.mark.parametrize("missing", ["namespace", "generation", "revisions"])
def test_order_without_a_part_is_bad(missing):
    value = order_to_json(Order(Desired("default", "digits", 7, (REVISION,))))
    del value[missing]
    with pytest.raises(BadFileError, match=missing):
        order_from_json(value)


def test_order_with_a_revision_of_another_shape_is_bad():
    value = order_to_json(Order(Desired("default", "digits", 7, (REVISION,))))
    del value["revisions"][0]["model_name"]
    with pytest.raises(BadFileError, match="model_name"):
        order_from_json(value)


def test_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    write_json(tmp_path / "x.json", {"a": 1}, durable=True)
    with pytest.raises(TypeError):
        write_json(tmp_path / "x.json", {"a": object()})
    assert json.loads((tmp_path / "x.json").read_text()) == {"a": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]
