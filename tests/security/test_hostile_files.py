"""Files that people send are text of theirs: what a page or the API answers is a sentence, soon, whatever they say."""

import time
from typing import Any

import pytest

from clusters.domain.cluster_file.kubeconfig import parse_kubeconfig
from common.errors import InvalidInput
from common.files.document import Document
from common.files.editor.text import document_of
from deployments.domain.service_file import parse_service
from integrations.clusters.base import Patch
from integrations.clusters.kubernetes.manifests.patched import applied
from integrations.clusters.kubernetes.manifests.workloads.pods import pod_template
from tests.integrations._support.manifests import given

TEXTS = [
    pytest.param("a: " + "[" * 9000, id="deep lists"),
    pytest.param("a: " + "{b: " * 9000, id="deep objects"),
    pytest.param("- " * 9000, id="deep items"),
    pytest.param("a: 0x" + "f" * 60_000, id="a number that Python does not show"),
    pytest.param("a: " + "9" * 60_000, id="a number that Python does not read"),
    pytest.param("a: !!int b", id="no int"),
    pytest.param("a: !!int ''", id="an empty int"),
    pytest.param("a: !!bool b", id="no bool"),
    pytest.param("a: !!float b", id="no float"),
    pytest.param("a: !!timestamp b", id="no timestamp"),
    pytest.param("a: !!set {b}", id="a set"),
    pytest.param("a: .nan", id="not a number"),
    pytest.param("a: &a [*a]", id="an endless list"),
    pytest.param("a: 1" + ":1" * 100_000, id="a number in base 60"),
    pytest.param("a: !!omap [{b: 1}]", id="pairs"),
    pytest.param("a: [" + "b," * 100_000 + "]", id="very many values"),
]


@pytest.mark.parametrize("text", TEXTS)
def test_yaml_of_a_page_is_refused_in_a_sentence(text: str) -> None:
    began_s = time.process_time()
    with pytest.raises(InvalidInput):
        document_of(text)
    assert time.process_time() - began_s < 1


@pytest.mark.parametrize("text", TEXTS)
def test_a_kubeconfig_is_refused_in_a_sentence_that_holds_nothing_of_it(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_kubeconfig(Document({"kubeconfig": text}, "connection"), "kubeconfig", "")
    assert "!!" not in caught.value.message


@pytest.mark.parametrize("text", ['a: "\\0"', 'a: "\\ud800"', '"\\0": a'])
def test_texts_that_no_database_holds_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="zero byte or half a surrogate pair"):
        document_of(text)


def test_a_certificate_that_is_no_ascii_is_refused() -> None:
    cluster = {"server": "https://10.0.0.1", "certificate-authority-data": "ü"}
    config = {
        "current-context": "own",
        "contexts": [{"name": "own", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    with pytest.raises(InvalidInput, match="no base64 of a PEM"):
        parse_kubeconfig(Document({"kubeconfig": config}, "connection"), "kubeconfig", "")


def test_names_of_fields_that_are_no_texts_are_refused() -> None:
    for fields in ({0: "a", "b": 1}, {False: 1, "b": 1}):
        with pytest.raises(InvalidInput, match="which is no text"):
            parse_service(fields)


def test_a_patch_that_doubles_what_is_there_is_stopped_before_memory_ends() -> None:
    desired, _, options = given("base")
    revision = desired.revisions[0]
    template: dict[str, Any] = pod_template(desired, revision, options)
    deployment = {"kind": "Deployment", "metadata": {"name": revision.name, "labels": {}}, "spec": template}
    copies = [{"op": "copy", "from": "/spec", "path": f"/spec/metadata/{number}"} for number in range(64)]
    began_s = time.process_time()
    with pytest.raises(InvalidInput, match="copies more than 262,144 bytes"):
        applied(deployment, Patch("spec.patches[0]", "Deployment", "", tuple(copies)))
    assert time.process_time() - began_s < 1


def test_a_patch_changes_neither_what_it_is_put_on_nor_itself() -> None:
    before = {"kind": "Service", "metadata": {"name": "a", "labels": {}}}
    operations = (
        {"op": "add", "path": "/metadata/annotations", "value": {}},
        {"op": "copy", "from": "/metadata/name", "path": "/metadata/annotations/b"},
    )
    after = applied(before, Patch("patches[0]", "Service", "", operations))
    assert after["metadata"]["annotations"] == {"b": "a"}
    assert before["metadata"] == {"name": "a", "labels": {}}
    assert operations[0]["value"] == {}
