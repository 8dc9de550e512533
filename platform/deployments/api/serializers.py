"""JSON forms of policies, services and rollouts: the selectors' values field by field."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from common.http.request_serializer import RequestSerializer
from deployments.api.approval_serializers import ApprovalsSerializer
from deployments.api.plans import AnalysisPlanSerializer, RoomSerializer
from deployments.domain.policy import When
from deployments.domain.rollout.webhooks import Answer
from deployments.domain.service_state.contract import Contract
from deployments.domain.service_state.failures import ModelState, TransitionStatus
from deployments.domain.waits import Wait
from deployments.models import RolloutPolicy
from deployments.views.shapes import (
    AnalysisRunView,
    DriftView,
    FailureEventView,
    FailureView,
    FileView,
    ModelStatusView,
    PlacementView,
    Plan,
    QuestionView,
    ReasonView,
    RequestsView,
    RevisionView,
    RolloutView,
    ServiceView,
    StepView,
)
from integrations.clusters.base import DriftPolicy, FailureReason


class PolicySerializer(serializers.Serializer[RolloutPolicy]):
    """A policy file with its defaults filled in, and how often it was changed."""

    name = serializers.CharField()
    strategy = serializers.CharField()
    alpha = serializers.FloatField(source="document.alpha", required=False)
    steps = serializers.SerializerMethodField()
    onInconclusive = serializers.CharField(source="on_inconclusive")  # noqa: N815 - the policy file's word
    scaleDownDelay = serializers.CharField(source="document.scaleDownDelay")  # noqa: N815
    progressDeadline = serializers.CharField(source="document.progressDeadline")  # noqa: N815
    then = serializers.CharField(source="document.then", required=False)
    approval = serializers.DictField(source="document.approval", required=False)
    sessionAffinity = serializers.DictField(source="document.sessionAffinity", required=False)  # noqa: N815
    analysis = serializers.DictField(source="document.analysis", required=False)
    deadline = serializers.CharField(source="document.deadline", required=False)
    onDeadline = serializers.CharField(source="document.onDeadline", required=False)  # noqa: N815
    version = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    created_by = serializers.CharField()

    @extend_schema_field({"type": "array", "items": {"type": "object"}})
    def get_steps(self, policy: RolloutPolicy) -> Any:
        """Return the steps as the file has them."""
        return policy.document["steps"]


class StepSerializer(serializers.Serializer[StepView]):
    """One step of a policy."""

    weight = serializers.IntegerField()
    mirror = serializers.IntegerField()
    match = serializers.ListField(child=serializers.DictField())
    hold_seconds = serializers.FloatField()
    pause = serializers.BooleanField()
    approval = serializers.DictField(allow_null=True, help_text="What ends the pause; null is anybody's promote.")
    analysis = serializers.DictField(allow_null=True)
    webhooks = serializers.ListField(child=serializers.DictField())


class QuestionSerializer(serializers.Serializer[QuestionView]):
    """A system outside that was asked at a step, and what it said last."""

    name = serializers.CharField()
    when = serializers.ChoiceField(choices=[when.value for when in When])
    attempt = serializers.IntegerField()
    step_index = serializers.IntegerField()
    answer = serializers.ChoiceField(choices=[answer.value for answer in Answer])
    message = serializers.CharField()
    tries = serializers.IntegerField(help_text="How often it was asked.")
    is_open = serializers.BooleanField(help_text="Whether it is asked again.")
    answered_at = serializers.DateTimeField(allow_null=True)
    deadline_at = serializers.DateTimeField()


class ReasonSerializer(serializers.Serializer[ReasonView]):
    """Why a rollout is where it is: for programs and for people."""

    code = serializers.CharField()
    message = serializers.CharField()


class WaitSerializer(serializers.Serializer[Wait]):
    """Why it waits: the condition, what was seen, of how many requests, what would change it, and since when."""

    condition = serializers.CharField()
    evidence = serializers.CharField()
    sample_size = serializers.IntegerField(allow_null=True)
    changes_when = serializers.CharField()
    since = serializers.DateTimeField()


class ContractSerializer(serializers.Serializer[Contract]):
    """What a rollout changes for clients: what would break them, and what harms nobody."""

    breaks = serializers.ListField(child=serializers.CharField())
    notes = serializers.ListField(child=serializers.CharField())
    unknown = serializers.CharField(help_text="Why nothing could be compared; empty where it was.")
    accepted_by = serializers.CharField(help_text="Who let the breaks pass; empty where there are none.")
    accepted_because = serializers.CharField()


class MeasurementSerializer(serializers.Serializer[Any]):
    """One metric of a gate with its evidence."""

    metric = serializers.CharField()
    unit = serializers.CharField()
    canary = serializers.FloatField(allow_null=True)
    stable = serializers.FloatField(allow_null=True)
    limit = serializers.FloatField(allow_null=True)
    verdict = serializers.CharField()
    message = serializers.CharField()
    more_requests = serializers.IntegerField(
        allow_null=True, help_text="How many more requests of the canary a verdict of Successful needs at least."
    )
    evidence_percent = serializers.FloatField(
        help_text="How far the evidence that the limit is broken has come; 100 fails the canary."
    )
    low = serializers.FloatField(allow_null=True, help_text="The canary's true value is surely above; at all looks.")
    high = serializers.FloatField(allow_null=True, help_text="The canary's true value is surely below; at all looks.")


class RequestsSerializer(serializers.Serializer[RequestsView]):
    """Requests the gateway sent to each side."""

    canary = serializers.IntegerField()
    stable = serializers.IntegerField()


class AnalysisRunSerializer(serializers.Serializer[AnalysisRunView]):
    """What was counted and judged at one step of one attempt; step_index is null in the background of all."""

    step_index = serializers.IntegerField(allow_null=True)
    attempt = serializers.IntegerField()
    weight_percent = serializers.IntegerField()
    mirror_percent = serializers.IntegerField()
    verdict = serializers.CharField()
    message = serializers.CharField()
    started_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)
    requests = RequestsSerializer()
    seen_percent = serializers.FloatField(allow_null=True)
    has_gate = serializers.BooleanField(help_text="False for a step without an analysis, which passes on time alone.")
    measurements = MeasurementSerializer(many=True)


class RolloutSerializer(serializers.Serializer[RolloutView]):
    """A rollout with its steps and analysis runs."""

    id = serializers.IntegerField()
    service = serializers.CharField()
    from_revision = serializers.CharField()
    to_revision = serializers.CharField()
    from_version = serializers.IntegerField()
    to_version = serializers.IntegerField()
    policy = serializers.CharField(allow_null=True)
    strategy = serializers.CharField()
    phase = serializers.CharField()
    attempt = serializers.IntegerField()
    step_index = serializers.IntegerField()
    steps = StepSerializer(many=True)
    weight_wanted = serializers.IntegerField()
    weight_actual = serializers.IntegerField()
    weight_seen_percent = serializers.FloatField(allow_null=True)
    seen_requests = serializers.IntegerField()
    mirror_wanted = serializers.IntegerField()
    mirror_actual = serializers.IntegerField()
    match_wanted = serializers.ListField(child=serializers.DictField())
    match_actual = serializers.ListField(child=serializers.DictField())
    session_affinity = serializers.DictField(allow_null=True)
    analysis = serializers.DictField(allow_null=True)
    confirmed_at = serializers.DateTimeField(
        allow_null=True,
        help_text="Since when the gateway sends what the present step gives; its hold counts from there.",
    )
    deadline_at = serializers.DateTimeField(allow_null=True)
    on_deadline = serializers.CharField(allow_null=True)
    then = serializers.CharField(allow_null=True)
    reason = ReasonSerializer()
    waits = WaitSerializer(allow_null=True, help_text="Null once it is over.")
    contract = ContractSerializer(allow_null=True, help_text="Null on the way back to an earlier revision.")
    verdict = serializers.CharField()
    approvals = ApprovalsSerializer()
    webhooks = QuestionSerializer(many=True)
    analysis_runs = AnalysisRunSerializer(many=True)
    started_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)
    created_by = serializers.CharField()


class RolloutStartSerializer(RequestSerializer[Any]):
    """What a new rollout is to go to; `version` is `2`, `@alias` or `models:/NAME/2`.

    What would break clients is refused with 409, unless an admin of the service's team accepts it, with a `reason`.
    """

    version = serializers.CharField(max_length=300)
    policy = serializers.CharField(max_length=63, required=False, allow_null=True)
    accept_contract_changes = serializers.BooleanField(default=False)
    reason = serializers.CharField(required=False, allow_null=True, allow_blank=True)


class RollbackSerializer(RequestSerializer[Any]):
    """Where to go back to: a revision's name; left out or null is the one that was stable before."""

    revision = serializers.CharField(max_length=63, required=False, allow_null=True)


class FailureEventSerializer(serializers.Serializer[FailureEventView]):
    """What a cluster says happened to a replica that failed; `at` is the last time of `count`."""

    at = serializers.DateTimeField()
    reason = serializers.CharField()
    message = serializers.CharField()
    count = serializers.IntegerField()


class FailureSerializer(serializers.Serializer[FailureView]):
    """The last failure of a replica, with what was found out about it; values of its environment are `$(NAME)`."""

    reason = serializers.ChoiceField(choices=[reason.value for reason in FailureReason])
    message = serializers.CharField()
    at = serializers.DateTimeField()
    exit_code = serializers.IntegerField(allow_null=True, help_text="128 + N for signal N; null where none ended.")
    replica = serializers.CharField()
    container = serializers.CharField()
    events = FailureEventSerializer(many=True)
    log = serializers.ListField(child=serializers.CharField(), help_text="Last lines of what failed.")
    is_final = serializers.BooleanField(
        help_text="Trying again cannot help: the model, or what the service file says of it, has to change."
    )


class ModelStatusSerializer(serializers.Serializer[ModelStatusView]):
    """How far the model is that the file names, and how the one stands that clients get: KServe's `modelStatus`."""

    transition_status = serializers.ChoiceField(choices=[each.value for each in TransitionStatus])
    active_model_state = serializers.ChoiceField(choices=[each.value for each in ModelState])
    target_model_state = serializers.ChoiceField(choices=[each.value for each in ModelState])
    last_failure = FailureSerializer(allow_null=True)


class PlacementSerializer(serializers.Serializer[PlacementView]):
    """Which GPU, or slice of one, each replica gets."""

    asked = serializers.CharField(help_text="What the file asks for: an extended resource, or auto.")
    resource = serializers.CharField(help_text="What the pods ask for.")
    products = serializers.ListField(
        child=serializers.CharField(), help_text="nvidia.com/gpu.product of nodes they are held to; empty for any."
    )
    why = serializers.CharField(help_text="What it was chosen by, as one reads it; empty where that is not known.")


class RevisionSerializer(serializers.Serializer[RevisionView]):
    """A revision and how it is now."""

    name = serializers.CharField()
    number = serializers.IntegerField()
    model = serializers.CharField()
    model_version = serializers.IntegerField()
    role = serializers.CharField()
    replicas_wanted = serializers.IntegerField()
    replicas_ready = serializers.IntegerField()
    restarts = serializers.IntegerField()
    weight_wanted = serializers.IntegerField()
    weight_actual = serializers.IntegerField()
    mirror_wanted = serializers.IntegerField()
    mirror_actual = serializers.IntegerField()
    replicas_to_restart = serializers.IntegerField()
    replicas_least = serializers.IntegerField()
    replicas_most = serializers.IntegerField()
    scaling = serializers.CharField()
    message = serializers.CharField()
    model_state = serializers.ChoiceField(choices=[each.value for each in ModelState])
    is_failing = serializers.BooleanField(help_text="Whether its last failure keeps a replica from serving now.")
    last_failure = FailureSerializer(allow_null=True)
    placement = PlacementSerializer(allow_null=True, help_text="null without a GPU.")
    egress = serializers.BooleanField(help_text="Whether its model may open connections to the network.")
    created_at = serializers.DateTimeField()


class AwaitedImportSerializer(serializers.Serializer[Any]):
    """The import that a service waits for before it turns to what its file says."""

    id = serializers.IntegerField()
    model = serializers.CharField()
    uri = serializers.CharField()
    note = serializers.CharField()
    ended_badly = serializers.BooleanField()


class FileSerializer(serializers.Serializer[FileView]):
    """Whether what was applied last is live; `message` says what is in its place, and why."""

    is_live = serializers.BooleanField()
    message = serializers.CharField()


class DriftSerializer(serializers.Serializer[DriftView]):
    """A change made by hand on the cluster, and what became of it."""

    message = serializers.CharField()
    object = serializers.CharField(help_text="Kind and name.")
    path = serializers.CharField(help_text="The field; empty where the object is gone.")
    wanted = serializers.CharField()
    found = serializers.CharField(help_text="As JSON; empty where it was taken away.")
    manager = serializers.CharField(help_text="Who owns the field; empty where that is not recorded.")
    changed_at = serializers.DateTimeField(allow_null=True, help_text="When the manager wrote the object last.")
    since = serializers.DateTimeField(help_text="When it was found first.")
    healed = serializers.BooleanField(help_text="Whether it was put back; it is left otherwise.")
    times = serializers.IntegerField(help_text="How often it was put back.")


class ServiceSerializer(serializers.Serializer[ServiceView]):
    """A service with its running revisions and its newest rollout."""

    namespace = serializers.CharField()
    name = serializers.CharField()
    cluster = serializers.CharField()
    url = serializers.CharField()
    preview_url = serializers.CharField(allow_null=True)
    phase = serializers.CharField()
    reason = serializers.CharField()
    waits = WaitSerializer(
        allow_null=True, help_text="Its own wait, else that of its rollout; null where it waits for nothing."
    )
    model = serializers.CharField()
    model_version = serializers.IntegerField(allow_null=True)
    import_state = AwaitedImportSerializer(allow_null=True)
    policy = serializers.CharField(allow_null=True)
    stable_revision = serializers.CharField(allow_null=True)
    revisions = RevisionSerializer(many=True)
    rollout = RolloutSerializer(allow_null=True)
    model_status = ModelStatusSerializer()
    file = FileSerializer()
    drift_policy = serializers.ChoiceField(choices=[policy.value for policy in DriftPolicy])
    drift = DriftSerializer(many=True, help_text="What was changed by hand on its cluster.")
    created_at = serializers.DateTimeField()


class PlanSerializer(serializers.Serializer[Plan]):
    """What applying a file would do; nothing was changed."""

    outcome = serializers.ChoiceField(choices=["unchanged", "created", "changed"])
    message = serializers.CharField()
    before = serializers.JSONField(allow_null=True)
    after = serializers.JSONField()
    contract = ContractSerializer(allow_null=True, help_text="Of the rollout that it starts; null without one.")
    analysis = AnalysisPlanSerializer(
        allow_null=True, help_text="Of a rollout's dry run: what its analysis could find."
    )
    room = RoomSerializer(allow_null=True, help_text="Of a rollout's dry run: whether it fits on the cluster's nodes.")
    patched = serializers.CharField(
        help_text="What patches make of what is rendered for the cluster, as a unified diff; empty without patches."
    )
    untried = serializers.CharField(
        help_text="Of a cluster file with patches: why its API server was not asked about them; empty where it was."
    )
    warnings = serializers.ListField(
        child=serializers.CharField(),
        help_text="Of a policy, and of a rollout by it: what it lets through, such as wrong answers.",
    )
