"""`egress` of a service file: read, written back, approved and shown."""

from copy import deepcopy
from dataclasses import replace

import pytest

from common.errors import InvalidInput
from deployments import mapping
from deployments.api.serializers import RevisionSerializer
from deployments.domain.service_file import content_of, file_saying, parse_service
from deployments.services import service_apply
from events.models import Event
from tests._support.page import marked
from tests.deployments._support.pages import DETAIL, signed_in, text
from tests.deployments._support.platform import Platform


@pytest.mark.parametrize("said", [True, False, None])
def test_a_file_says_it_or_leaves_it_open(said: bool | None) -> None:
    assert parse_service(saying(said)).egress is said
    assert parse_service(Platform().document()).egress is None


@pytest.mark.parametrize("said", ["true", 1, {}])
def test_what_is_neither_true_nor_false_is_refused(said: object) -> None:
    with pytest.raises(
        InvalidInput, match=r"^spec\.predictor\.model\.egress is .*; expected true or false$"
    ) as refused:
        parse_service(saying(said))
    assert refused.value.field == "spec.predictor.model.egress"


@pytest.mark.parametrize("said", [True, False])
def test_a_file_is_written_back_with_it(said: bool) -> None:
    before = saying(not said)
    spec = parse_service(before)
    assert file_saying(before, spec, replace(content_of(spec), egress=said)) == saying(said)
    assert file_saying(before, spec, content_of(spec)) == before


def test_a_revision_with_it_is_shown_and_approved_as_another(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    who = {"actor": "root", "now": platform.clock(), "may_grant_egress": True}
    document = saying(True, uri="models:/digits/2")
    service_apply(document=document, namespace=None, name=None, **who)  # type: ignore[arg-type]
    row = platform.rollout()

    with_it = mapping.approval_subject(row, mapping.rollout_state(row))
    row.to_revision.egress = False
    without = mapping.approval_subject(row, mapping.rollout_state(row))
    row.to_revision.egress = None
    assert without == mapping.approval_subject(row, mapping.rollout_state(row)), "approvals given before hold"
    assert with_it.configuration_digest != without.configuration_digest
    made = Event.objects.filter(kind="RevisionCreated").latest("id")
    assert made.message.endswith("; it may open connections to the network")
    shown = [RevisionSerializer(each).data["egress"] for each in platform.view().revisions]
    assert shown == [False, True]
    (said,) = marked(text(signed_in(), DETAIL), "egress")
    assert said.startswith("digits-00002 ")


def saying(egress: object, **file: str) -> dict[str, object]:
    document = deepcopy(Platform().document(**file))
    document["spec"]["predictor"]["model"]["egress"] = egress
    return document
