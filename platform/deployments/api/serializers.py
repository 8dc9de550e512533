"""Serializers of policies, services and rollouts."""

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
    """A policy file with defaults; `version` counts its changes."""

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
    version = serializers.IntegerField(help_text="Version of the policy, from 1; rises with each change.")
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    created_by = serializers.CharField()

    @extend_schema_field({"type": "array", "items": {"type": "object"}})
    def get_steps(self, policy: RolloutPolicy) -> Any:
        """Return the steps as in the file."""
        return policy.document["steps"]


class StepSerializer(serializers.Serializer[StepView]):
    """One step of a policy."""

    weight = serializers.IntegerField(
        help_text="Percentage of clients' requests sent to the new revision; 0 for copies or a group only."
    )
    mirror = serializers.IntegerField(
        help_text="Percentage of clients' requests copied to the new revision; 0 if it receives requests themselves."
    )
    match = serializers.ListField(
        child=serializers.DictField(),
        help_text="Group of requests sent to the new revision, as in the policy file; empty for none.",
    )
    hold_seconds = serializers.FloatField(help_text="Minimum duration of the step, in seconds.")
    pause = serializers.BooleanField()
    approval = serializers.DictField(
        allow_null=True, help_text="Approvals that end the pause; null if any promote ends it."
    )
    analysis = serializers.DictField(
        allow_null=True, help_text="Gate of the step, as in the policy file; null without one."
    )
    webhooks = serializers.ListField(child=serializers.DictField())


class QuestionSerializer(serializers.Serializer[QuestionView]):
    """An external check at a step, with its last response."""

    name = serializers.CharField()
    when = serializers.ChoiceField(choices=[when.value for when in When])
    attempt = serializers.IntegerField()
    step_index = serializers.IntegerField()
    answer = serializers.ChoiceField(choices=[answer.value for answer in Answer])
    message = serializers.CharField()
    tries = serializers.IntegerField(help_text="Number of requests sent.")
    is_open = serializers.BooleanField(help_text="Whether further requests follow.")
    answered_at = serializers.DateTimeField(allow_null=True, help_text="Time of the last response; null without one.")
    deadline_at = serializers.DateTimeField()


class ReasonSerializer(serializers.Serializer[ReasonView]):
    """Reason of the rollout's current phase, as a code and a message."""

    code = serializers.CharField()
    message = serializers.CharField()


class WaitSerializer(serializers.Serializer[Wait]):
    """A wait: condition, evidence, its sample size in requests, what ends the wait, and its start."""

    condition = serializers.CharField()
    evidence = serializers.CharField()
    sample_size = serializers.IntegerField(
        allow_null=True,
        help_text="Number of the canary's requests, or copies to the shadow, in the evidence; null without requests.",
    )
    changes_when = serializers.CharField()
    since = serializers.DateTimeField()


class ContractSerializer(serializers.Serializer[Contract]):
    """Changes for clients of a rollout: breaking changes and compatible ones."""

    breaks = serializers.ListField(child=serializers.CharField())
    notes = serializers.ListField(child=serializers.CharField())
    unknown = serializers.CharField(help_text="Reason why the contracts could not be compared; empty if they were.")
    accepted_by = serializers.CharField(help_text="Actor who accepted the breaking changes; empty if there were none.")
    accepted_because = serializers.CharField()


class MeasurementSerializer(serializers.Serializer[Any]):
    """A metric of a gate with its evidence."""

    metric = serializers.CharField()
    unit = serializers.CharField()
    canary = serializers.FloatField(allow_null=True, help_text="Value of the canary; null without data.")
    stable = serializers.FloatField(allow_null=True, help_text="Value of stable; null without data.")
    limit = serializers.FloatField(allow_null=True, help_text="Limit of the canary's value; null without one.")
    verdict = serializers.CharField()
    message = serializers.CharField()
    more_requests = serializers.IntegerField(
        allow_null=True,
        help_text="Minimum number of further canary requests for a verdict of Successful; null if independent of them.",
    )
    evidence_percent = serializers.FloatField(
        help_text="Evidence that the limit is exceeded, in percent; 100 fails the canary."
    )
    low = serializers.FloatField(
        allow_null=True, help_text="Lower bound of the canary's true value, valid at all looks; null if unknown."
    )
    high = serializers.FloatField(
        allow_null=True, help_text="Upper bound of the canary's true value, valid at all looks; null if unknown."
    )


class RequestsSerializer(serializers.Serializer[RequestsView]):
    """Number of requests that the gateway sent to canary and stable."""

    canary = serializers.IntegerField()
    stable = serializers.IntegerField()


class AnalysisRunSerializer(serializers.Serializer[AnalysisRunView]):
    """Analysis of one step of one attempt; step_index is null for the background analysis of all steps."""

    step_index = serializers.IntegerField(
        allow_null=True, help_text="Index of the step, from 0; null for the background analysis."
    )
    attempt = serializers.IntegerField()
    weight_percent = serializers.IntegerField(help_text="Percentage of clients' requests of the step.")
    mirror_percent = serializers.IntegerField(help_text="Percentage of clients' requests copied in the step.")
    verdict = serializers.CharField()
    message = serializers.CharField()
    started_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True, help_text="End of the analysis; null while it runs.")
    requests = RequestsSerializer()
    seen_percent = serializers.FloatField(
        allow_null=True,
        help_text="Observed percentage of requests to the canary, or copied to the shadow; null without requests.",
    )
    has_gate = serializers.BooleanField(
        help_text="Whether the step has an analysis; without one it passes by time alone."
    )
    measurements = MeasurementSerializer(many=True)


class RolloutSerializer(serializers.Serializer[RolloutView]):
    """A rollout with its steps and analysis runs."""

    id = serializers.IntegerField()
    service = serializers.CharField()
    from_revision = serializers.CharField()
    to_revision = serializers.CharField()
    from_version = serializers.IntegerField()
    to_version = serializers.IntegerField()
    policy = serializers.CharField(allow_null=True, help_text="Name of the policy; null for a rollout without one.")
    strategy = serializers.CharField()
    phase = serializers.CharField()
    attempt = serializers.IntegerField()
    step_index = serializers.IntegerField()
    steps = StepSerializer(many=True)
    weight_wanted = serializers.IntegerField(help_text="Desired percentage of clients' requests for the new revision.")
    weight_actual = serializers.IntegerField(help_text="Actual percentage of clients' requests for the new revision.")
    weight_seen_percent = serializers.FloatField(
        allow_null=True,
        help_text="Observed percentage of the current step's requests for the new revision; null without any.",
    )
    seen_requests = serializers.IntegerField(help_text="Number of clients' requests in the current step.")
    mirror_wanted = serializers.IntegerField(
        help_text="Desired percentage of clients' requests copied to the new revision."
    )
    mirror_actual = serializers.IntegerField(
        help_text="Actual percentage of clients' requests copied to the new revision."
    )
    match_wanted = serializers.ListField(
        child=serializers.DictField(), help_text="Desired group of requests, as in the policy file; empty without one."
    )
    match_actual = serializers.ListField(
        child=serializers.DictField(), help_text="Actual group of requests, as in the policy file; empty without one."
    )
    session_affinity = serializers.DictField(
        allow_null=True, help_text="Session key of clients' requests, as in the policy file; null without one."
    )
    analysis = serializers.DictField(
        allow_null=True, help_text="Background gate of all steps, as in the policy file; null without one."
    )
    confirmed_at = serializers.DateTimeField(
        allow_null=True,
        help_text="Time since when the gateway applies the current step's weights; the step's hold starts there.",
    )
    deadline_at = serializers.DateTimeField(allow_null=True, help_text="Deadline of the rollout; null without one.")
    on_deadline = serializers.CharField(allow_null=True, help_text="Action at the deadline; null without a deadline.")
    then = serializers.CharField(
        allow_null=True,
        help_text="Action after a shadow's last step: pause, promote or end; null for other strategies.",
    )
    reason = ReasonSerializer()
    waits = WaitSerializer(allow_null=True, help_text="Current wait; null once the rollout has ended.")
    contract = ContractSerializer(allow_null=True, help_text="Changes for clients; null for a rollback.")
    verdict = serializers.CharField()
    approvals = ApprovalsSerializer()
    webhooks = QuestionSerializer(many=True)
    analysis_runs = AnalysisRunSerializer(many=True)
    started_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True, help_text="End of the rollout; null while it runs.")
    created_by = serializers.CharField()


class RolloutStartSerializer(RequestSerializer[Any]):
    """A rollout to start; `version` is `2`, `@alias` or `models:/NAME/2`.

    Breaking changes fail with 409, unless an admin of the service's team accepts them, with a `reason`.
    """

    version = serializers.CharField(max_length=300)
    policy = serializers.CharField(max_length=63, required=False, allow_null=True)
    accept_contract_changes = serializers.BooleanField(default=False)
    reason = serializers.CharField(required=False, allow_null=True, allow_blank=True)


class RollbackSerializer(RequestSerializer[Any]):
    """Target of a rollback: a revision's name; absent or null for the previous stable revision."""

    revision = serializers.CharField(max_length=63, required=False, allow_null=True)


class FailureEventSerializer(serializers.Serializer[FailureEventView]):
    """A cluster's event about a failed replica; `at` is the last of `count` occurrences."""

    at = serializers.DateTimeField()
    reason = serializers.CharField()
    message = serializers.CharField()
    count = serializers.IntegerField()


class FailureSerializer(serializers.Serializer[FailureView]):
    """The last failure of a replica with its diagnosis; values of its environment are shown as `$(NAME)`."""

    reason = serializers.ChoiceField(choices=[reason.value for reason in FailureReason])
    message = serializers.CharField()
    at = serializers.DateTimeField()
    exit_code = serializers.IntegerField(
        allow_null=True, help_text="Exit code, 128 + N for signal N; null if no container exited."
    )
    replica = serializers.CharField()
    container = serializers.CharField()
    events = FailureEventSerializer(many=True)
    log = serializers.ListField(child=serializers.CharField(), help_text="Last lines of the failed container's log.")
    is_final = serializers.BooleanField(
        help_text="Whether retries cannot succeed: the model, or its settings in the service file, must change."
    )


class ModelStatusSerializer(serializers.Serializer[ModelStatusView]):
    """State of the file's model and of the served model (KServe: `modelStatus`)."""

    transition_status = serializers.ChoiceField(choices=[each.value for each in TransitionStatus])
    active_model_state = serializers.ChoiceField(choices=[each.value for each in ModelState])
    target_model_state = serializers.ChoiceField(choices=[each.value for each in ModelState])
    last_failure = FailureSerializer(allow_null=True)


class PlacementSerializer(serializers.Serializer[PlacementView]):
    """GPU or slice that each replica uses."""

    asked = serializers.CharField(help_text="Resource requested in the file: an extended resource, or auto.")
    resource = serializers.CharField(help_text="Extended resource that the pods request.")
    products = serializers.ListField(
        child=serializers.CharField(), help_text="Labels nvidia.com/gpu.product of the nodes allowed; empty for any."
    )
    why = serializers.CharField(help_text="Reason for the choice, as a sentence; empty if unknown.")


class RevisionSerializer(serializers.Serializer[RevisionView]):
    """A revision and its current state."""

    name = serializers.CharField()
    number = serializers.IntegerField()
    model = serializers.CharField()
    model_version = serializers.IntegerField()
    role = serializers.CharField(help_text="Role: stable, canary, shadow, retiring, retired or failed.")
    replicas_wanted = serializers.IntegerField(
        help_text="Desired number of replicas; 0 for a stopped service, and for a revision that no longer serves."
    )
    replicas_ready = serializers.IntegerField()
    restarts = serializers.IntegerField()
    weight_wanted = serializers.IntegerField()
    weight_actual = serializers.IntegerField()
    mirror_wanted = serializers.IntegerField()
    mirror_actual = serializers.IntegerField()
    replicas_to_restart = serializers.IntegerField(
        help_text="Number of replicas that still wait for a requested restart."
    )
    replicas_least = serializers.IntegerField(help_text="Minimum number of replicas for autoscaling.")
    replicas_most = serializers.IntegerField(help_text="Maximum number of replicas for autoscaling.")
    asleep_since = serializers.DateTimeField(
        allow_null=True,
        help_text="Since when the revision has no replicas and wakes with the first request; null if it is awake.",
    )
    asleep_hours = serializers.FloatField(help_text="Replica hours that scaling to zero has saved.")
    asleep_saved = serializers.FloatField(
        allow_null=True, help_text="What these hours would have cost, in `currency`; null if no hourly price is set."
    )
    currency = serializers.CharField(help_text="Currency of the cluster's prices; empty if none is set.")
    start_seconds = serializers.FloatField(
        allow_null=True,
        help_text="Seconds that the last replica took to start, if the revision may scale to zero; null if unknown.",
    )
    scaling = serializers.CharField(
        help_text="Current and target load, as text; empty if the number of replicas is fixed."
    )
    message = serializers.CharField()
    model_state = serializers.ChoiceField(choices=[each.value for each in ModelState])
    is_failing = serializers.BooleanField(
        help_text="Whether the last failure currently prevents a replica from serving."
    )
    last_failure = FailureSerializer(allow_null=True)
    placement = PlacementSerializer(allow_null=True, help_text="GPU or slice of the replicas; null without a GPU.")
    egress = serializers.BooleanField(help_text="Whether the model may open network connections.")
    image = serializers.CharField(
        help_text="Image of a custom predictor, which the model version represents; empty for a model."
    )
    protocol = serializers.CharField(help_text="Protocol of a custom predictor, v1 or v2; empty for a model.")
    pool = serializers.CharField(
        help_text="Model pool whose replicas serve it, `namespace/name`; empty where it has its own."
    )
    pool_memory_bytes = serializers.IntegerField(
        allow_null=True,
        help_text="Of a model pool, memory that the models of a replica may take, in bytes; null for a service.",
    )
    template_changes = serializers.CharField(
        help_text="Differences between the revision's pinned pod template and that of a new revision; empty if none."
    )
    created_at = serializers.DateTimeField()


class AwaitedImportSerializer(serializers.Serializer[Any]):
    """The import that a service waits for before it applies its file."""

    id = serializers.IntegerField()
    model = serializers.CharField()
    uri = serializers.CharField()
    note = serializers.CharField()
    ended_badly = serializers.BooleanField()


class FileSerializer(serializers.Serializer[FileView]):
    """Whether the file applied last is live; if not, `message` states what is live instead, and why."""

    is_live = serializers.BooleanField()
    message = serializers.CharField()


class DriftSerializer(serializers.Serializer[DriftView]):
    """A manual change on the cluster and its outcome."""

    message = serializers.CharField()
    object = serializers.CharField(help_text="Kind and name of the changed object.")
    path = serializers.CharField(help_text="Path of the field; empty if the object was deleted.")
    wanted = serializers.CharField()
    found = serializers.CharField(help_text="Value found, as JSON; empty if the field was removed.")
    manager = serializers.CharField(help_text="Field manager that owns the field; empty if not recorded.")
    changed_at = serializers.DateTimeField(
        allow_null=True, help_text="Time of the field manager's last write to the object; null if not recorded."
    )
    since = serializers.DateTimeField(help_text="Time when the change was first found.")
    healed = serializers.BooleanField(help_text="Whether the change was reverted; otherwise it is kept.")
    times = serializers.IntegerField(help_text="Number of reverts; 1 if the change is kept.")


class ServiceSerializer(serializers.Serializer[ServiceView]):
    """A service with its running revisions and newest rollout."""

    namespace = serializers.CharField()
    name = serializers.CharField()
    cluster = serializers.CharField()
    url = serializers.CharField()
    leaving_urls = serializers.ListField(
        child=serializers.CharField(),
        help_text="URLs at Gateways that the service is leaving, where it still answers; empty except while it moves.",
    )
    preview_url = serializers.CharField(
        allow_null=True, help_text="URL of the preview; null except in a blue/green rollout."
    )
    phase = serializers.CharField()
    reason = serializers.CharField()
    waits = WaitSerializer(
        allow_null=True, help_text="Wait of the service, else of its rollout; null if neither waits."
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
    drift = DriftSerializer(many=True, help_text="Manual changes on the service's cluster.")
    access = serializers.JSONField(
        help_text="Who may call it: `public`, `authenticated`, or an object with `teams`, `users` and `keys`."
    )
    cors_origins = serializers.ListField(
        child=serializers.CharField(), help_text="Origins of web pages that may call it from a browser; `*` is all."
    )
    limits = serializers.JSONField(
        help_text=(
            "Limits of its requests: `requestsPerSecond` and `rowsPerMinute`, in `perCaller` of each caller, with "
            "`concurrentRequests` of unanswered ones, `requestBytes` of each body; empty without any."
        )
    )
    objectives = serializers.JSONField(
        help_text=(
            "Service level objectives: `availability` in percent of the requests, `latency` with `percent` of the "
            "answers and `withinMs`; empty without any."
        )
    )
    follows = serializers.CharField(
        help_text="The object of a cluster that says what it is, and refuses other changes; empty without one."
    )
    created_at = serializers.DateTimeField()


class PlanSerializer(serializers.Serializer[Plan]):
    """Plan of applying a file, which is not applied."""

    outcome = serializers.ChoiceField(choices=["unchanged", "created", "changed"])
    message = serializers.CharField()
    before = serializers.JSONField(allow_null=True)
    after = serializers.JSONField()
    contract = ContractSerializer(
        allow_null=True, help_text="Changes for clients of the rollout that starts; null without a rollout."
    )
    analysis = AnalysisPlanSerializer(
        allow_null=True, help_text="Regressions that the analysis can detect; null except for a rollout's dry run."
    )
    room = RoomSerializer(
        allow_null=True,
        help_text="Whether the rollout fits on the cluster's nodes; null except for a rollout's dry run.",
    )
    patched = serializers.CharField(
        help_text="Effect of patches on the rendered manifests, as a unified diff; empty without patches."
    )
    untried = serializers.CharField(
        help_text="Reason why the API server did not validate a cluster file's patches; empty if it did."
    )
    warnings = serializers.ListField(
        child=serializers.CharField(),
        help_text="Warnings of a policy, and of rollouts by it: regressions not detected, such as wrong answers.",
    )
