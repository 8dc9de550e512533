"""No page asks more, sends more or draws more with 10,000 services than with a page full of them."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django.fixtures import Settings

from deployments.domain.service_state.desired import Role
from deployments.models import InferenceService, Revision
from tests import scenes
from tests.deployments._support.pages import signed_in

pytestmark = pytest.mark.django_db

FULL = 120
"""So many that no list shows all of them, nor all but one page."""
MANY = 10_000
PAGES = [
    "/",
    "/services/",
    "/services/?q=copy",
    "/services/?phase=Ready&page=2",
    "/services/default/digits/",
    "/services/default/digits/config/",
    "/services/default/digits/rollouts/{rollout}/",
    "/models/",
    "/models/digits/",
    "/models/digits/versions/1/",
    "/models/digits/versions/2/compare?with=1",
    "/models/digits/versions/1/try/",
    "/deploy/digits/2/",
    "/deploy/digits/2/?service=default/digits",
    "/policies/",
    "/storage/",
    "/policies/new",
    "/policies/careful/",
    "/platform/",
    "/platform/clusters/local/",
    "/platform/clusters/local/gpus",
    "/webhooks/",
    "/teams/",
    "/teams/default/",
    "/keys/",
    "/tokens/",
    "/audit/",
]


@dataclass(frozen=True, slots=True)
class Cost:
    """What a page takes: queries of the database, bytes of the answer, elements to draw."""

    queries: int
    bytes: int
    elements: int


def cost_of(client: Client, page: str) -> Cost:
    with CaptureQueriesContext(connection) as asked:
        answer = client.get(page)
    assert answer.status_code == 200, page
    return Cost(len(asked), len(answer.content), len(re.findall(rb"<[a-z]", answer.content)))


def grow(of: InferenceService, until: int) -> None:
    """Make services like that one, each with a live revision, until there are so many."""
    there = InferenceService.objects.count()
    stable = Revision.objects.get(service=of, role=Role.STABLE)
    columns = {field.attname: getattr(stable, field.attname) for field in stable._meta.concrete_fields}
    scenes.copies(of, until - there, first=there)
    without = InferenceService.objects.filter(revisions=None).values_list("pk", "name")
    rows = (Revision(**{**columns, "id": None, "service_id": pk, "name": f"{name}-00001"}) for pk, name in without)
    Revision.objects.bulk_create(rows, batch_size=500)


@pytest.mark.long
def test_no_page_grows_with_the_number_of_services(settings: Settings, tmp_path: Path) -> None:
    settings.CLUSTER_FOLDER = tmp_path / "nothing"
    service, client = scenes.service(), signed_in()
    rollout = scenes.rollout(service)
    pages = [page.format(rollout=rollout.pk) for page in PAGES]
    for page in pages:
        client.get(page)  # what is asked once and kept is not the page's
    costs = []
    for services in (FULL, MANY):
        grow(service, services)
        costs.append({page: cost_of(client, page) for page in pages})
    few, many = costs
    assert few["/services/"].elements > 50 * 8, "the list is full"
    grown = {page: (few[page], many[page]) for page in pages if is_grown(few[page], many[page])}
    assert grown == {}


def is_grown(few: Cost, many: Cost) -> bool:
    """Return whether a page takes more than before, by more than the digits of a larger count."""
    return many.queries > few.queries or many.bytes > few.bytes + 500 or many.elements > few.elements + 5
