"""What page tests begin with: tokens, and a service in the middle of something, made by the real services.

What a cluster and a model check would report is written into the rows under the service's lock, as the reconciler does.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from access.domain.tokens import new_signing_key
from access.models import TokenIssuer
from access.services.issuers import issuer_create
from access.services.keys import IssuedKey, key_create
from accounts.domain.scopes import Scope
from accounts.models import Team
from accounts.services import team_default, token_create, user_get_or_create
from accounts.services.teams import team_create, team_get
from clusters.models import Cluster
from deployments import mapping
from deployments.domain.autoscaling.scale_to_zero import Sleep, sleep_json
from deployments.domain.phases import Code, Phase
from deployments.domain.policy import DIRECT
from deployments.domain.service_state.desired import Role
from deployments.domain.service_state.failures import kept
from deployments.domain.service_state.service_lifecycle import held, roles_after
from deployments.models import AnalysisRun, InferenceService, Revision, Rollout, TrafficPoint
from deployments.reconcile.participants.traffic import EVERY
from deployments.reconcile.service_change import changing
from deployments.services import policy_apply, rollout_start, service_apply
from events.services.subscriptions import CreatedWebhook, webhook_create
from gpus.models import Repartition
from gpus.services.repartition_proposal import RepartitionOrder
from gpus.services.repartitions import repartition_propose
from integrations.clusters.base import Failure, FailureReason, NodeGpus, Nodes
from model_jobs.builds.domain.order import BuildOrder
from model_jobs.builds.services import build_start
from model_jobs.models import Build, Trial, Tuning
from model_jobs.trials.services import trial_start
from model_jobs.tunings.domain.order import TuningOrder
from model_jobs.tunings.services import tuning_start
from recordings.models import Recording, Replay
from recordings.services.replays import replay_start
from registry.models import IMAGE_PLATFORM, ModelVersion, RegisteredModel

POLICY = {
    "name": "careful",
    "strategy": "canary",
    "steps": [
        {"weight": 10, "hold": "10s", "analysis": {"minRequests": 100}},
        {"weight": 25, "hold": "10s", "pause": True, "analysis": {"minRequests": 100}},
        {"weight": 50, "hold": "20s"},
    ],
}
MEASUREMENT = {
    "metric": "server_errors",
    "unit": "percent",
    "canary": 0.5,
    "stable": 0.1,
    "limit": 1.0,
    "verdict": "Running",
    "message": "1 of 200 canary requests failed, 1 of 800 of stable",
}


def token(scope: Scope = Scope.ADMIN, name: str = "tester") -> str:
    """Return the secret of a new token."""
    user = user_get_or_create(username=name, now=timezone.now())
    lifetime = timedelta(hours=1)
    return token_create(user=user, name=name, scope=scope, lifetime=lifetime, now=timezone.now(), actor="test").secret


def team_there(name: str) -> Team:
    """Return a team, which a test with transactions of its own may have removed with all rows, or which is new."""
    team_default(now=timezone.now())
    if not Team.objects.filter(name=name).exists():
        team_create(name=name, actor="test", now=timezone.now())
    return team_get(name=name)


def access_key(name: str = "ci", *, team: str = "default", services: Sequence[str] = ("default/*",)) -> IssuedKey:
    """Return a new key of a team for 90 days, with its token."""
    return key_create(
        name=name,
        team=team_there(team),
        user=None,
        services=services,
        lifetime=timedelta(days=90),
        actor="test",
        now=timezone.now(),
    )


PUBLIC_KEYS = {"keys": [dict(new_signing_key("k1")[1])]}
"""A JSON Web Key Set."""


def issuer(name: str = "corp") -> TokenIssuer:
    """Return a new issuer whose keys were given."""
    url, now = "https://id.example", timezone.now()
    return issuer_create(name=name, issuer=url, audience="models", keys=PUBLIC_KEYS, actor="test", now=now)


def model_version(number: int, model: str = "digits") -> ModelVersion:
    """Return a checked version of a model with one input of four numbers."""
    now = timezone.now()
    registered, _ = RegisteredModel.objects.get_or_create(
        name=model, defaults={"created_at": now, "created_by": "test"}
    )
    signature = {
        "inputs": [{"name": "image", "datatype": "FP32", "shape": [-1, 4]}],
        "outputs": [{"name": "label", "datatype": "INT64", "shape": [-1]}],
    }
    return ModelVersion.objects.create(
        model=registered,
        number=number,
        digest=f"sha256:{number:064d}",
        artifact_uri=f"file:///artifacts/{model}-{number}",
        size_bytes=1024,
        source_name="model.onnx",
        platform="onnxruntime_onnx",
        signature=signature,
        status="READY",
        created_at=now,
        created_by="test",
    )


def service(name: str = "digits", version: int = 1, **predictor: object) -> InferenceService:
    """Return a live service of `digits` with the policy `careful`; makes the model version where it is not there."""
    now = timezone.now()
    if not ModelVersion.objects.filter(model__name="digits", number=version).exists():
        model_version(version)
    policy_apply(document=POLICY, name="careful", actor="test", now=now)
    document = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": name},
        "spec": {
            "predictor": {
                "model": {"modelFormat": {"name": "onnx"}, "storageUri": f"models:/digits/{version}"},
                **predictor,
            },
            "rollout": {"policy": "careful"},
        },
    }
    row, _ = service_apply(document=document, namespace="default", name=name, actor="test", now=now)
    with changing(row.pk, now=now) as change:
        change.service.live_at, change.service.phase = now, "Ready"
        change.service.reason = f"{name}-00001 serves all traffic with 1 replica"
        change.service.observed = {f"{name}-00001": _seen(100)}
    return row


def model_pool(*members: str, name: str = "warm") -> InferenceService:
    """Return a live model pool with services of `digits`, version 1, in it."""
    document = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": name},
        "spec": {"predictor": {"minReplicas": 2, "modelPool": {"memoryBudget": "1Gi", "sharedWith": ["vision"]}}},
    }
    row, _ = service_apply(document=document, namespace="default", name=name, actor="test", now=timezone.now())
    with changing(row.pk, now=timezone.now()) as change:
        change.service.live_at, change.service.phase = timezone.now(), "Ready"
        change.service.reason = f"{name}-00001 serves the services in this pool with 2 replicas"
    for member in members:
        its = service(member)
        put_in_pool(its, row)
        InferenceService.objects.filter(pk=its.pk).update(
            reason=f"{member}-00001 serves all traffic in model pool {row}"
        )
    return row


def put_in_pool(of: InferenceService, pool: InferenceService) -> None:
    """Let what a service runs be in a pool."""
    Revision.objects.filter(service=of).update(pool=str(pool))


def never_fits(name: str) -> None:
    """Let the model of a service in pool `default/warm` be too large for it."""
    row = InferenceService.objects.get(name=name)
    message = (
        f"pool default/warm cannot load it: model 'default.{name}@1' needs 1.5 GiB of memory and never fits: all "
        "models together may take 1.0 GiB; make it smaller, or raise --model-memory-budget-bytes"
    )
    seen = Failure(FailureReason.MODEL_LOAD_FAILED, message, timezone.now().timestamp(), replica="warm-00001-0")
    Revision.objects.filter(service=row).update(last_failure=kept(None, seen))
    short = f"no replica of model pool default/warm serves {name}-00001 ({message})"
    observed = {f"{name}-00001": {**_seen(0), "ready": 0, "restart_numbers": [0], "is_failing": True}}
    InferenceService.objects.filter(pk=row.pk).update(phase="Degraded", reason=short, observed=observed)


def sleeper(name: str = "digits", *, is_waking: bool = False) -> InferenceService:
    """Return a service that scaled to zero three hours ago, and is asleep or waking."""
    row = service(name, minReplicas=0)
    now = timezone.now()
    slept_at = (now - timedelta(hours=3)).timestamp()
    sleep = Sleep(slept_at=slept_at, woken_at=now.timestamp() - 1 if is_waking else None, start_s=4.2)
    with changing(row.pk, now=now) as change:
        change.is_changed = True
        [its] = change.revisions
        its.replicas = int(is_waking)
        its.load = {"sleep": sleep_json(sleep)}
        its.save(update_fields=["replicas", "load"])
        change.service.observed = {its.name: {**_seen(100), "ready": 0}}
        change.service.phase, change.service.reason = "Ready", held(its.name, is_asleep=not is_waking)
        change.service.seen_at = now
    return row


def rollout(
    of: InferenceService, *, step_index: int = 0, phase: Phase = Phase.PROGRESSING, version: int = 2
) -> Rollout:
    """Return a rollout of the service to a new version, brought to a step."""
    now = timezone.now()
    if not ModelVersion.objects.filter(model__name="digits", number=version).exists():
        model_version(version)
    row = rollout_start(namespace=of.namespace, name=of.name, version=str(version), policy=None, actor="test", now=now)
    move(row, step_index=step_index, phase=phase)
    return row


def turn_into_images(of: InferenceService) -> None:
    """Let what a service runs be images of custom predictors, and its versions those of these images."""
    for row in Revision.objects.filter(service=of):
        image = f"registry.example.com/fraud/predictor@{row.model_version.digest}"
        row.custom = {"protocolVersion": "v2", "containers": [{"name": "predictor", "image": image}]}
        row.save(update_fields=["custom"])
    versions = ModelVersion.objects.filter(revisions__service=of)
    versions.update(platform=IMAGE_PLATFORM, artifact_uri="", size_bytes=0, source_name="predictor", signature={})


def promoted(of: InferenceService) -> Rollout:
    """Return a rollout of the service to version 2 that is over, so that version 1 is the way back."""
    row = rollout(of, step_index=3, phase=Phase.HEALTHY)
    now = timezone.now()
    with changing(of.pk, now=now) as change:
        states = (mapping.revision_state(revision) for revision in change.revisions)
        ways = {"old": row.from_revision.name, "new": row.to_revision.name, "policy": DIRECT}
        change.put_revisions(roles_after(states, outcome=Phase.HEALTHY, now=now, **ways))
        change.service.phase = "Ready"
    return row


def replay(of: Recording) -> Replay:
    """Return a replay of a recording, to which it adds a request, by version 1."""
    Recording.objects.filter(pk=of.pk).update(requests=1, bytes=1)
    return replay_start(
        namespace=of.service.namespace,
        name=of.service.name,
        recording=of.pk,
        version="1",
        actor="test",
        now=timezone.now(),
    )


def tuning(number: int = 1) -> Tuning:
    """Return a tuning of a version of digits."""
    return tuning_start(
        model="digits", number=number, service=None, order=TuningOrder(10.0), actor="test", now=timezone.now()
    )


def trial(number: int = 1) -> Trial:
    """Return a trial of a version of digits."""
    request = {"inputs": [{"name": "image", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}]}
    return trial_start(model="digits", number=number, request=request, actor="test", now=timezone.now())


def build(number: int = 1) -> Build:
    """Return a build of a version of digits."""
    return build_start(
        model="digits", number=number, service=None, order=BuildOrder(), actor="test", now=timezone.now()
    )


def move(row: Rollout, **fields: Any) -> None:
    """Bring a rollout somewhere, with an analysis run at its step, as a tick of the reconciler would."""
    now = timezone.now()
    with changing(row.service_id, now=now) as change:
        change.is_changed = True
        for name, value in fields.items():
            setattr(row, name, value)
        weight = POLICY["steps"][row.step_index]["weight"] if row.phase in (Phase.PROGRESSING, Phase.PAUSED) else 0
        row.weight, row.confirmed_at = weight, now
        row.reason_code = fields.get("reason_code", Code.ANALYSIS_RUNNING)
        row.reason_message = fields.get("reason_message", f"the canary has answered 200 requests at {weight} %")
        row.save()
        stable, canary = row.from_revision.name, row.to_revision.name
        change.service.phase = "Progressing"
        change.service.observed = {stable: _seen(100 - weight), canary: _seen(weight)}
        if row.step_index < len(POLICY["steps"]):
            AnalysisRun.objects.update_or_create(
                rollout=row,
                attempt=row.attempt,
                step_index=row.step_index,
                defaults={
                    "weight": weight,
                    "measurements": [MEASUREMENT],
                    "canary_requests": 200,
                    "stable_requests": 800,
                    "started_at": now,
                },
            )


def failure(of: InferenceService, revision: str, *, is_failing: bool = True) -> None:
    """Let a replica of a revision have failed, as the reconciler records it."""
    at = timezone.now().timestamp()
    events = [
        {"at": at - 9, "reason": "Scheduled", "message": "Successfully assigned it to node-1", "count": 1},
        {"at": at, "reason": "BackOff", "message": "Back-off restarting failed container runtime", "count": 4},
    ]
    with changing(of.pk, now=timezone.now()) as change:
        change.is_changed = True
        row = next(each for each in change.revisions if each.name == revision)
        row.last_failure = {
            "reason": "ModelLoadFailed",
            "message": "runtime ended with exit code 1: model.onnx is not an ONNX model: it is not a protobuf message",
            "at": at,
            "exit_code": 1,
            "replica": f"{revision}-7c9d8f6b5-x2x4k",
            "container": "runtime",
            "events": events,
            "log": ["loading model digits version 2", "model.onnx is not an ONNX model: <b>it is not</b> a protobuf"],
        }
        row.save(update_fields=["last_failure"])
        seen = {**_seen(0), "ready": 0, "restart_numbers": [0], "is_failing": True} if is_failing else _seen(100)
        change.service.observed = {**change.service.observed, revision: seen}


def traffic(of: InferenceService, *per_second: float, errors: float = 0.0, until: datetime | None = None) -> None:
    """Let the service's live revision have had so many requests per second, look by look, the last one until now.

    Args:
        errors: part of the requests that failed.
    """
    until, seconds = until or timezone.now(), EVERY.total_seconds()
    revision = Revision.objects.get(service=of, role=Role.STABLE)
    TrafficPoint.objects.bulk_create(
        TrafficPoint(
            service=of,
            revision=revision,
            at=until - EVERY * back,
            seconds=seconds,
            requests=round(rate * seconds),
            server_errors=round(rate * seconds * errors),
            latency=[[2000.0, round(rate * seconds * 0.98)], [5000.0, round(rate * seconds * 0.02)]] if rate else [],
            replicas=1,
        )
        for back, rate in enumerate(reversed(per_second))
    )
    InferenceService.objects.filter(pk=of.pk).update(traffic_at=until)


def copies(of: InferenceService, count: int, *, first: int = 0) -> None:
    """Make so many more services like that one, with its namespace, without revisions; `first` is in the first name."""
    of.refresh_from_db()
    columns = {field.attname: getattr(of, field.attname) for field in of._meta.concrete_fields}
    model = "" if of.model_version is None else of.model_version.model.name
    copied = [
        InferenceService(**{**columns, "id": None, "name": f"copy-{number:05d}"})
        for number in range(first, first + count)
    ]
    for row in copied:
        row.searched = mapping.searched_text(row.namespace, row.name, model)
    InferenceService.objects.bulk_create(copied, batch_size=500)


def webhook(*events: str, url: str = "https://a.example/", team: str | None = None) -> CreatedWebhook:
    """Return a webhook that is told of the events, of healthy rollouts where none is named."""
    if team is not None:
        team_there(team)
    return webhook_create(
        url=url, events=events or ["RolloutHealthy"], description="", team=team, actor="test", now=timezone.now()
    )


def replicas(of: InferenceService) -> None:
    """Let the service's live revision be seen with two replicas, of which one cannot start."""
    now = timezone.now()
    fields = {"restarts": 0, "started_at": now.timestamp() - 3600, "message": ""}
    failing = {"phase": "BackingOff", "restarts": 4, "started_at": None, "message": "it ended with exit code 1"}
    with changing(of.pk, now=now) as change:
        name = f"{of.name}-00001"
        seen = [{"name": f"{name}-0", "phase": "Ready", **fields}, {"name": f"{name}-1", **fields, **failing}]
        change.service.observed = {**change.service.observed, name: {**_seen(100), "replicas": seen}}


def _seen(weight: int) -> dict[str, Any]:
    return {"weight": weight, "ready": 1, "restarts": 0, "message": ""}


GPU_NODE = NodeGpus(
    node="gpu-1",
    product="NVIDIA-H100-80GB-HBM3",
    memory_mib=81559,
    count=1,
    strategy="mixed",
    config="all-1g.10gb",
    config_state="success",
    resources={"nvidia.com/mig-1g.10gb": 7},
    pods=(),
)


def repartition(*nodes: NodeGpus, cluster: str = "local", wanted: str = "1 x 3g.40gb") -> Repartition:
    """Return a proposal to cut a node of seven small slices so that there is a large one, too."""
    return repartition_propose(
        cluster=Cluster.objects.get(name=cluster),
        order=RepartitionOrder((wanted,)),
        nodes=Nodes(gpus=nodes or (GPU_NODE,), unknown=""),
        actor="alice",
        now=timezone.now(),
    )
