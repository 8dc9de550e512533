"""Secrets of variables: what a rollback, a replay and a tuning of a service do where one is missing, and where not."""

import pytest
from django.utils import timezone

from common.errors import InvalidInput
from deployments.models import InferenceService, Revision
from deployments.services import service_plan
from deployments.services.revisions.secret_env import env_of_job, why_no_env
from deployments.services.services import spec_of
from model_jobs.models import Tuning
from model_jobs.tunings.services import TUNING
from recordings.models import Recording, Replay
from recordings.services.replays import REPLAY
from sealed_secrets.models import SealedSecret
from sealed_secrets.services import secret_create, secret_delete
from tests.deployments._support.platform import Platform

pytestmark = pytest.mark.django_db
ENV = [
    {"name": "TZ", "value": "UTC"},
    {"name": "MODEL_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}},
]


@pytest.fixture
def service(platform: Platform) -> InferenceService:
    """Return a live service whose first revision names a secret."""
    secret_create(namespace="default", name="hub", values={"token": "hf_planted"}, actor="test", now=timezone.now())
    model = {"modelFormat": {"name": "onnx"}, "storageUri": "models:/digits/1", "env": ENV}
    return platform.live(model=model)


def test_a_rollback_to_a_revision_whose_secret_is_gone_is_refused(
    platform: Platform, service: InferenceService
) -> None:
    platform.apply(policy=None)
    stopped = Revision.objects.filter(name="digits-00001").exclude(stopped_at=None)
    platform.until(stopped.exists, 200)
    secret_delete(namespace="default", name="hub", actor="test", now=timezone.now())
    with pytest.raises(InvalidInput, match="MODEL_TOKEN names secret hub, which namespace default does not have"):
        platform.back("digits-00001")
    secret_create(namespace="default", name="hub", values={"token": "2"}, actor="test", now=timezone.now())
    platform.back("digits-00001")
    service.refresh_from_db()
    assert service.document["spec"]["predictor"]["model"]["env"] == ENV, "the file names it again"


def test_jobs_on_this_machine_have_the_value_and_those_without_it_say_why(service: InferenceService) -> None:
    spec = spec_of(service)
    assert env_of_job(service, spec) == {"TZ": "UTC", "MODEL_TOKEN": "hf_planted"}
    assert why_no_env(service, spec) == ""
    SealedSecret.objects.all().delete()
    assert "MODEL_TOKEN names secret hub, which namespace default does not have" in why_no_env(service, spec)
    assert "MODEL_TOKEN names secret hub" in TUNING.impossible(Tuning(service=service))
    assert "MODEL_TOKEN names secret hub" in REPLAY.impossible(Replay(service=service, recording=Recording()))


def test_jobs_on_kubernetes_have_the_plain_values_only(service: InferenceService) -> None:
    service.cluster.kind = "kubernetes"
    assert env_of_job(service, spec_of(service)) == {"TZ": "UTC"}


def test_a_dry_run_warns_of_a_plain_value_under_the_name_of_a_secret(platform: Platform) -> None:
    platform.version(1)
    document = platform.document(policy=None)
    document["spec"]["predictor"]["model"]["env"] = [{"name": "MODEL_API_KEY", "value": "planted"}]
    now = platform.clock()
    planned = service_plan(document=document, namespace="default", name="digits", actor="alice", now=now)
    (warning,) = planned.plan.warnings
    assert warning.startswith("spec.predictor.model.env has the value of MODEL_API_KEY, which everybody who sees")
    assert "planted" not in warning
