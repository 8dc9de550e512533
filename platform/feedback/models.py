"""Kept answers of services, the labels that come for them later, and scores of both."""

from django.db import models
from django.db.models import Q

from deployments.models import InferenceService


class Kept(models.Model):
    """What is kept of a service's answers, and how much of it there is.

    Attributes:
        share_percent: of the requests, by their `x-request-id`.
        days: after which an answer, its label and its scores are deleted.
        max_rows, max_bytes: limits of stored answers; at a limit further answers are left out.
        output: the output whose top class and score are kept; empty for the first one.
        outputs: names of outputs whose values are kept, encrypted.
        keeps_inputs: whether the inputs' values are kept too, encrypted.
        parameters: names of request parameters that are kept, by which quality is sliced.
        rows, bytes: stored now.
        left_out: answers that were not kept at a limit.
        unmatched: labels that were deleted without an answer of their request.
    """

    service = models.OneToOneField(InferenceService, on_delete=models.CASCADE, related_name="kept")
    share_percent = models.FloatField()
    days = models.PositiveIntegerField()
    max_rows = models.PositiveIntegerField()
    max_bytes = models.BigIntegerField()
    output = models.CharField(max_length=200, blank=True)
    outputs = models.JSONField(default=list)
    keeps_inputs = models.BooleanField(default=False)
    parameters = models.JSONField(default=list)
    rows = models.BigIntegerField(default=0)
    bytes = models.BigIntegerField(default=0)
    left_out = models.BigIntegerField(default=0)
    unmatched = models.BigIntegerField(default=0)
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=300)

    def __str__(self) -> str:
        return f"answers of service {self.service_id}"


class Answer(models.Model):
    """One revision's answer to a request; of a request that was copied there are two.

    Attributes:
        version: number of the model version.
        at: time of the request.
        top: [class, score] of each row of the output kept, at most 64 rows; of a regression [0, value], of an output
            of one whole number a row [value, value], of BYTES [text, 1.0]. A score is None where it is not finite.
            Empty where the answer has no such output.
        sealed: compressed and encrypted JSON {"outputs": {name: tensor}, "inputs": {name: tensor}} in V2's form, with
            "left_out" where they are too large; empty where neither is kept (`feedback.selectors.answers`).
        parameters: of the request, those that `Kept.parameters` names, as text.
        bytes: about what the row takes.
    """

    service = models.ForeignKey(InferenceService, on_delete=models.CASCADE, related_name="+")
    request_id = models.CharField(max_length=128)
    revision = models.CharField(max_length=100)
    version = models.PositiveIntegerField()
    at = models.DateTimeField()
    top = models.JSONField(default=list)
    sealed = models.BinaryField(default=b"")
    parameters = models.JSONField(default=dict)
    bytes = models.PositiveIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["service", "request_id", "revision"], name="answer_once_a_revision")
        ]
        indexes = [models.Index(fields=["service", "at"], name="answer_by_age")]

    def __str__(self) -> str:
        return f"answer of {self.revision} to {self.request_id}"


class Label(models.Model):
    """The right answer to a request, a score or a reward, which came later.

    Attributes:
        value: a number or a text, or one of them for each row of the request.
        given_at: when the label was known, as its sender says; `received_at` where it does not.
        received_at: when its present value came.
        changes: how often another value replaced it.
        joined_at: when it was joined with an answer of its request; None before that.
        next_try_at: when the next look for answers is due; None once all are there. A label that was joined has one
            more look where its answer is young, since those of other revisions may come later.
    """

    service = models.ForeignKey(InferenceService, on_delete=models.CASCADE, related_name="+")
    request_id = models.CharField(max_length=128)
    value = models.JSONField()
    given_at = models.DateTimeField()
    given_by = models.CharField(max_length=300)
    received_at = models.DateTimeField()
    changes = models.PositiveIntegerField(default=0)
    joined_at = models.DateTimeField(null=True)
    next_try_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["service", "request_id"], name="label_once_a_request")]
        indexes = [
            models.Index(fields=["next_try_at"], condition=Q(next_try_at__isnull=False), name="label_waiting"),
            models.Index(fields=["service", "received_at"], name="label_by_age"),
        ]

    def __str__(self) -> str:
        return f"label of {self.request_id}"


class ServiceScorer(models.Model):
    """A scorer of a service: turns an answer and its label into a loss, 0 for right up to 1 for as wrong as can be.

    Attributes:
        kind: a name of `feedback.domain.scorers`.
        options: of that kind.
        unscored: labels that did not fit their answer or the scorer; `unscored_reason` is the sentence about the last.
        backfill_below: labels that were joined before the scorer was made are scored newest first; those with ids from
            here on are done. None once all are.
    """

    service = models.ForeignKey(InferenceService, on_delete=models.CASCADE, related_name="scorers")
    name = models.CharField(max_length=63)
    kind = models.CharField(max_length=30)
    options = models.JSONField(default=dict)
    unscored = models.BigIntegerField(default=0)
    unscored_reason = models.TextField(blank=True)
    backfill_below = models.BigIntegerField(null=True)
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=300)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["service", "name"], name="scorer_name_unique")]

    def __str__(self) -> str:
        return self.name


class Score(models.Model):
    """The loss of one answer by one scorer.

    Attributes:
        answered_at: time of the request.
        labelled_at: when the label was received.
        scored_at: when it was joined.
        loss: 0 to 1; the mean over the request's rows.
        parameters: as the answer's.
    """

    scorer = models.ForeignKey(ServiceScorer, on_delete=models.CASCADE, related_name="scores")
    request_id = models.CharField(max_length=128)
    revision = models.CharField(max_length=100)
    answered_at = models.DateTimeField()
    labelled_at = models.DateTimeField()
    scored_at = models.DateTimeField()
    loss = models.FloatField()
    parameters = models.JSONField(default=dict)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["scorer", "request_id", "revision"], name="score_once_an_answer")
        ]
        indexes = [models.Index(fields=["scorer", "revision", "answered_at"], name="score_by_time")]

    def __str__(self) -> str:
        return f"score of {self.revision} for {self.request_id}"


class HourlyQuality(models.Model):
    """Scores of a revision in one hour, summed up; they stay when the scores are deleted.

    Attributes:
        hour: of the requests.
        scores: how many; `loss` and `squares` are the sums of their losses and of the squares.
        delay_s: the sum of the seconds from a request to its label.
    """

    scorer = models.ForeignKey(ServiceScorer, on_delete=models.CASCADE, related_name="hours")
    revision = models.CharField(max_length=100)
    hour = models.DateTimeField()
    scores = models.PositiveIntegerField(default=0)
    loss = models.FloatField(default=0.0)
    squares = models.FloatField(default=0.0)
    delay_s = models.FloatField(default=0.0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["scorer", "revision", "hour"], name="quality_once_an_hour")]

    def __str__(self) -> str:
        return f"quality of {self.revision} in the hour from {self.hour:%Y-%m-%d %H:%M}"


class DriftFeature(models.Model):
    """A feature of a service's requests or answers whose shape is watched; at most 64 of a service.

    Attributes:
        name: in words, such as "mean of image".
        source, kind: of `feedback.domain.drift.features`.
        version: id of the model version whose answers it is of; None of an input, which outlives versions.
        bins: None until its first values fixed them; {} of one that has no shape, such as of names.
        since: when its reference began.
        state: of `feedback.domain.drift.watch`; reference, detector, and the canary's difference.
        evidence: logarithm of the e-detector's capital.
        alarm_at: when drift was detected; None without, or after a person accepted the present.
        sentence: what has moved, as of then.
    """

    service = models.ForeignKey(InferenceService, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=200)
    source = models.CharField(max_length=10)
    kind = models.CharField(max_length=10)
    version = models.BigIntegerField(null=True)
    bins = models.JSONField(null=True)
    since = models.DateTimeField()
    state = models.JSONField(null=True)
    evidence = models.FloatField(default=0.0)
    alarm_at = models.DateTimeField(null=True)
    sentence = models.CharField(max_length=1000, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["service", "name"], name="drift_feature_unique")]

    def __str__(self) -> str:
        return self.name


class DriftBlock(models.Model):
    """The open block of time of a service whose features are watched.

    Attributes:
        stable, canary: names of the revisions it counts answers of; empty without a canary.
        rows: of stable, so far.
        counts: {"stable": {feature: counts}, "canary": the same}.
        first: {feature: values} of features without bins, at most 500 each, encrypted
            (`feedback.reconcile.first_values`); sorted, so that none belongs to a request.
    """

    service = models.OneToOneField(InferenceService, on_delete=models.CASCADE, related_name="+")
    began_at = models.DateTimeField()
    stable = models.CharField(max_length=100)
    canary = models.CharField(max_length=100, blank=True)
    rows = models.PositiveIntegerField(default=0)
    counts = models.JSONField(default=dict)
    first = models.BinaryField(default=b"")

    def __str__(self) -> str:
        return f"open block of service {self.service_id}"


class DriftHour(models.Model):
    """The shapes of a revision's features in one hour: {feature: counts}; deleted after 90 days."""

    service = models.ForeignKey(InferenceService, on_delete=models.CASCADE, related_name="+")
    revision = models.CharField(max_length=100)
    hour = models.DateTimeField()
    counts = models.JSONField(default=dict)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["service", "revision", "hour"], name="drift_once_an_hour")]
        indexes = [models.Index(fields=["hour"], name="drift_by_age")]

    def __str__(self) -> str:
        return f"shapes of {self.revision} in the hour from {self.hour:%Y-%m-%d %H:%M}"
