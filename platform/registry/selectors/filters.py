"""Filters of models and versions, for the API's lists and the pages' forms."""

from django.db.models import Exists, OuterRef, Q
from django.db.models.fields.json import KeyTextTransform
from django.db.models.lookups import Exact

from accounts.domain.roles import DEFAULT_TEAM, Owned
from accounts.models import Ownership
from common.errors import InvalidInput
from common.http.filters import Filter
from registry.domain import tags
from registry.domain.approval import Approval
from registry.domain.version_lifecycle import Status
from registry.models import Alias, ModelVersion


class _Tag(Filter):
    """Keeps the rows that have a tag with a value."""

    def condition(self, text: str) -> Q:
        """Return the condition for `key=value`; raises InvalidInput."""
        key, sign, value = text.partition("=")
        if not sign:
            raise InvalidInput(f"{self.name} is {text[:80]!r}; expected key=value", field=self.name)
        # Invalid keys are refused: in a path into JSON, digits would mean a list index.
        (pair,) = tags.changed({}, {key: value}).items()
        return Q(Exact(KeyTextTransform(pair[0], "tags"), pair[1]))


class _Team(Filter):
    """Keeps the models that a team owns; models without an owner are the team `default`'s."""

    def condition(self, text: str) -> Q:
        """Return the condition for the team's name."""
        super().condition(text)
        owned = Ownership.objects.filter(kind=Owned.MODEL)
        theirs = Q(name__in=owned.filter(team__name=text).values("name"))
        return theirs | ~Q(name__in=owned.values("name")) if text == DEFAULT_TEAM else theirs


class _Platform(Filter):
    """Keeps the models with a version of a platform."""

    def condition(self, text: str) -> Q:
        """Return the condition for the platform's name."""
        super().condition(text)
        return Q(Exists(ModelVersion.objects.filter(model=OuterRef("pk"), platform=text)))


class _Alias(Filter):
    """Keeps the models that have an alias."""

    def condition(self, text: str) -> Q:
        """Return the condition for the alias's name."""
        super().condition(text)
        return Q(Exists(Alias.objects.filter(model=OuterRef("pk"), name=text)))


class _Pointing(Filter):
    """Keeps the versions that an alias points at."""

    def condition(self, text: str) -> Q:
        """Return the condition for the alias's name."""
        super().condition(text)
        return Q(Exists(Alias.objects.filter(version=OuterRef("pk"), name=text)))


TAG = _Tag("tag", "", "Filter by tag, as `key=value`; with several, all must match.", repeatable=True)
OF_MODELS = (
    Filter("search", "name__icontains|description__icontains", "Search term in the name or description."),
    TAG,
    Filter("name_prefix", "name__startswith", "Filter by a prefix of the name."),
    _Alias("alias", "", "Filter by alias: models that have it."),
    _Team("team", "", "Filter by owning team."),
    _Platform("platform", "", "Filter by platform: models with a version of it, such as `onnxruntime_onnx`."),
)
OF_VERSIONS = (
    TAG,
    Filter("status", "status", "Filter by status.", choices=tuple(Status)),
    Filter("approval", "approval", "Filter by approval state.", choices=tuple(Approval)),
    _Pointing("alias", "", "Filter by alias: the version that it points to."),
)
