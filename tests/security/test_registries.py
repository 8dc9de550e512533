"""Images come from allowed registries only, whatever is written to make another registry look like one of them."""

from dataclasses import replace
from typing import Any

import pytest

from common.errors import InvalidInput
from common.images import Image, parse_image, parse_registries, refusal
from integrations.clusters.base import Candidate, Desired, Patch
from integrations.clusters.kubernetes.manifests import render
from integrations.clusters.kubernetes.manifests.images import images, refuse_images
from integrations.clusters.kubernetes.manifests.jobs.replay import replay
from tests._support.golden import BASE
from tests.integrations._support.manifests import given

DIGEST = "sha256:" + "a" * 64
ALLOWED = parse_registries(["registry.example.com/team", "registry.example.com:5000", "docker.io/fairlead/"])


@pytest.mark.parametrize(
    "name",
    [
        "registry.example.com/team/x",
        "registry.example.com/team",
        "registry.example.com/team/x:1.0",
        "registry.example.com/team/deep/x:Upper_Tag",
        f"registry.example.com/team/x@{DIGEST}",
        f"registry.example.com/team/x:1.0@{DIGEST}",
        "registry.example.com:5000/anything",
        "registry.example.com:5000/anything:1",
        "fairlead/tokenizer:1",
        "docker.io/fairlead/tokenizer",
        "index.docker.io/fairlead/tokenizer",
    ],
)
def test_an_image_of_an_allowed_registry_may_run(name: str) -> None:
    assert refusal(name, ALLOWED) == ""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("registry.example.com.evil.com/team/x", id="the host goes on"),
        pytest.param("registry.example.com-evil.com/team/x", id="the host goes on by a dash"),
        pytest.param("evil-registry.example.com/team/x", id="the host begins earlier"),
        pytest.param("evil.com/registry.example.com/team/x", id="the host is in the path"),
        pytest.param("registry.example.com@evil.com/team/x", id="credentials of an address"),
        pytest.param("registry.example.com:5000@evil.com/x", id="a password of an address"),
        pytest.param("registry.example.com/team@evil/x", id="an at sign in the path"),
        pytest.param("registry.example.com:443/team/x", id="another port"),
        pytest.param("registry.example.com:50000/x", id="the port goes on"),
        pytest.param("registry.example.com:5000.evil.com/x", id="the port becomes a host"),
        pytest.param("registry.example.com:/team/x", id="a port without digits"),
        pytest.param("registry.example.com/x", id="the registry without the path"),
        pytest.param("registry.example.com/teams/x", id="the path goes on"),
        pytest.param("registry.example.com/team/../x", id="up a folder"),
        pytest.param("registry.example.com/team/./x", id="a dot"),
        pytest.param("registry.example.com//team/x", id="two slashes"),
        pytest.param("registry.example.com/team/%2e%2e/x", id="encoded"),
        pytest.param("registry.example.com./team/x", id="the root's dot"),
        pytest.param("REGISTRY.example.com/team/x", id="upper case in the host"),
        pytest.param("registry.example.com/Team/x", id="upper case in the path"),
        pytest.param("FAIRLEAD/x", id="upper case makes a part a host"),
        pytest.param("https://registry.example.com/team/x", id="a scheme"),
        pytest.param("//registry.example.com/team/x", id="a host as addresses have it"),
        pytest.param("x", id="an official image"),
        pytest.param("redis:7", id="an official image with a tag"),
        pytest.param("fairlead", id="an official image of an allowed name"),
        pytest.param("docker.io/fairlead", id="an official image of that name, in full"),
        pytest.param("team/x", id="no registry"),
        pytest.param("localhost/fairlead/x", id="this machine"),
        pytest.param("registry-1.docker.io/fairlead/x", id="a host behind an allowed name"),
        pytest.param("fairlead.docker.io/x", id="an organisation as a host"),
        pytest.param(f"evil.com/x@{DIGEST}", id="a digest elsewhere"),
        pytest.param("registry.example.com/team/x@sha256:12", id="a short digest"),
        pytest.param(f"registry.example.com/team/x@{DIGEST}@{DIGEST}", id="two digests"),
        pytest.param("registry.example.com/team/x:", id="an empty tag"),
        pytest.param("registry.example.com/team/x:1:2", id="two tags"),
        pytest.param("registry.example.com/team/x\n", id="a line break"),
        pytest.param(" registry.example.com/team/x", id="a space"),
        pytest.param("régistry.example.com/team/x", id="a letter beyond ASCII"),
        pytest.param("registry.example.com/team/x\u2024y", id="a dot beyond ASCII"),
        pytest.param("[::1]:5000/x", id="an address"),
        pytest.param("", id="nothing"),
    ],
)
def test_an_image_of_any_other_registry_is_refused_by_one_sentence(name: str) -> None:
    why = refusal(name, ALLOWED)
    assert repr(name)[1:-1] in why
    assert "\n" not in why


def test_a_refusal_names_what_was_asked_what_is_allowed_and_who_can_change_it() -> None:
    assert refusal("redis:7", ALLOWED[2:]) == (
        "'redis:7' is an image of docker.io/library/redis, and this installation allows those of docker.io/fairlead; "
        "use one of these, or have an administrator of the installation change FAIRLEAD_ALLOWED_REGISTRIES"
    )


def test_without_registries_every_image_may_run() -> None:
    assert refusal("evil.com/x", ()) == ""


def test_a_name_is_read_as_runtimes_read_it() -> None:
    assert parse_image("redis") == Image("docker.io/library/redis")
    assert parse_image(f"a.b:1/x:2@{DIGEST}") == Image("a.b:1/x", "2", DIGEST)


@pytest.mark.parametrize(
    "prefix", ["fairlead", "registry.example.com/*", "https://a.b", "a.b/x:1", "A.b", "a.b//c", "", "*", "a.b@c"]
)
def test_what_is_no_registry_is_refused(prefix: str) -> None:
    with pytest.raises(InvalidInput, match="is no registry; expected a host"):
        parse_registries([prefix])


def patch_of(operation: dict[str, Any]) -> Patch:
    return Patch("spec.patches[0]", "Deployment", operations=({"op": "add", **operation},))


SIDE: dict[str, Any] = {"name": "side", "image": "evil.com/x"}


@pytest.mark.parametrize(
    "operation",
    [
        pytest.param({"path": "/spec/template/spec/containers/-", "value": SIDE}, id="a container"),
        pytest.param({"path": "/spec/template/spec/initContainers/-", "value": SIDE}, id="an init container"),
        pytest.param({"path": "/spec/template/spec/containers/0/image", "value": "evil.com/x"}, id="the runtime's own"),
        pytest.param({"path": "/spec/template/spec/ephemeralContainers", "value": [SIDE]}, id="an ephemeral container"),
        pytest.param(
            {"path": "/spec/template/spec/volumes/-", "value": {"name": "v", "image": {"reference": "evil.com/x"}}},
            id="a volume of an image",
        ),
    ],
)
def test_the_driver_refuses_an_image_that_a_patch_brings(operation: dict[str, Any]) -> None:
    desired, shares, options = given(BASE)
    options = replace(options, allowed_registries=ALLOWED)
    refuse_images(render(desired, shares, options), options)
    bent = replace(
        desired, revisions=tuple(replace(each, patches=(patch_of(operation),)) for each in desired.revisions)
    )
    with pytest.raises(InvalidInput, match=r"of Deployment digits-00001: 'evil.com/x' is an image of evil.com/x"):
        refuse_images(render(bent, shares, options), options)


OTHERS = {"transformer": (), "explainer": parse_registries(["example.org/tokenizer"])}
"""Registries of the images beside the one that is refused."""


@pytest.mark.parametrize("kind", OTHERS)
def test_the_driver_refuses_a_companion_and_lets_one_that_runs_go_on(kind: str) -> None:
    desired, shares, options = given(kind)
    options = replace(options, allowed_registries=(*ALLOWED, *OTHERS[kind]))
    made = render(desired, shares, options)
    with pytest.raises(InvalidInput, match=f"container {kind} of Deployment digits-00002-{kind}"):
        refuse_images(made, options)
    running = [each for each in made if each["kind"] == "Deployment"]
    refuse_images(made, options, running)
    others = [each for each in running if not each["metadata"]["name"].endswith(f"-{kind}")]
    with pytest.raises(InvalidInput):
        refuse_images(made, options, others)


def test_a_replay_runs_no_image_of_another_registry() -> None:
    desired, _, options = given(BASE)
    (revision, *_) = desired.revisions
    candidate = Candidate(
        namespace="default",
        service="digits",
        replay="1",
        name="one",
        model_name="digits",
        model_version="1",
        artifact_uri=revision.artifact_uri,
        artifact_digest=revision.artifact_digest,
        patches=(patch_of({"path": "/spec/template/spec/initContainers/-", "value": SIDE}),),
    )
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "1"}
    assert replay(candidate, "one", owner, options)
    with pytest.raises(InvalidInput, match="container side"):
        replay(candidate, "one", owner, replace(options, allowed_registries=ALLOWED))


def test_every_image_of_a_service_is_looked_at() -> None:
    desired, shares, options = given("transformer")
    assert isinstance(desired, Desired)
    found = [image for each in render(desired, shares, options) for _, image in images(each)]
    assert sorted(set(found)) == ["example.org/tokenizer:1", "fairlead/serving-runtime:test"]
