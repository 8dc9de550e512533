"""Queries of the registry. Read-only; versions come with their model and aliases: no list needs a query per row."""

import re
from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db.models import Exists, F, Max, OuterRef, Prefetch, Q, QuerySet, Subquery, Value, Window
from django.db.models.functions import Coalesce, RowNumber

from accounts.domain.approver import Approver
from accounts.domain.demand import signed_in_refusal
from accounts.domain.roles import DEFAULT_TEAM, Owned
from accounts.models import Ownership
from accounts.selectors import makers_of_tokens
from accounts.selectors.demands import demands_on
from common.errors import InvalidInput, NotFound
from registry.domain.approval import Approval, refusal
from registry.domain.import_lifecycle import ImportStatus
from registry.domain.version_lifecycle import Status
from registry.models import Alias, ModelImport, ModelVersion, RegisteredModel

_LOOKED_THROUGH = 60
_EARLIER = 20
"""Limit of earlier versions that are read."""
_TURNS_REMEMBERED = timedelta(hours=1)
_URI = re.compile(r"models:/(?P<model>[^/@]+)(?:/(?P<number>[0-9]{1,9})|@(?P<alias>[^/@]+))")


def model_list() -> QuerySet[RegisteredModel]:
    """Return all models with their aliases, and as `latest_version` the highest existing number."""
    newest = ModelVersion.objects.filter(model=OuterRef("pk")).order_by("-number")
    models = RegisteredModel.objects.annotate(latest_version=Subquery(newest.values("number")[:1]))
    return models.prefetch_related("aliases__version")


def model_overview() -> QuerySet[RegisteredModel]:
    """Return all models as `model_list` does, with `latest_status`, `latest_platform` and the `team` that owns them."""
    newest = ModelVersion.objects.filter(model=OuterRef("pk")).order_by("-number")
    owned = Ownership.objects.filter(kind=Owned.MODEL, name=OuterRef("name"))
    return model_list().annotate(
        latest_status=Subquery(newest.values("status")[:1]),
        latest_platform=Subquery(newest.values("platform")[:1]),
        team=Coalesce(Subquery(owned.values("team__name")[:1]), Value(DEFAULT_TEAM)),
    )


def model_get(*, name: str) -> RegisteredModel:
    """Return the model of that name as `model_list` does; raises NotFound."""
    return _found(model_list(), name)


def model_exists(*, name: str) -> bool:
    """Return whether a model of that name exists."""
    return RegisteredModel.objects.filter(name=name).exists()


def is_somebodys_model(*, name: str) -> bool:
    """Return whether a model of that name exists, or is reserved for a team."""
    is_owned = Ownership.objects.filter(kind=Owned.MODEL, name=name).exists()
    return is_owned or RegisteredModel.objects.filter(name=name).exists()


def version_list(*, model: str) -> QuerySet[ModelVersion]:
    """Return the versions of the model of that name; raises NotFound."""
    return _versions().filter(model=_found(RegisteredModel.objects.all(), model))


def model_version_get(*, model: str, number: int) -> ModelVersion:
    """Return one version; raises NotFound, which says whether the model or the number is unknown."""
    version = _versions().filter(model__name=model, number=number).first()
    if version is None:
        known = model_get(name=model)
        raise NotFound(f"model {model!r} has no version {number}; its newest number is {known.latest_number}")
    return version


def model_version_resolve(*, uri: str) -> ModelVersion:
    """Return the version that `models:/NAME/VERSION` or `models:/NAME@ALIAS` currently names.

    Raises:
        InvalidInput: the URI is malformed.
        NotFound: no such model, version or alias.
    """
    match = _URI.fullmatch(uri)
    if match is None:
        raise InvalidInput(f"{uri[:200]!r} is no model URI; write models:/NAME/VERSION or models:/NAME@ALIAS")
    if match["number"]:
        return model_version_get(model=match["model"], number=int(match["number"]))
    return alias_get(model=match["model"], name=match["alias"]).version


def alias_list(*, model: str) -> QuerySet[Alias]:
    """Return the aliases of the model of that name, with the versions they point at; raises NotFound."""
    found = _found(RegisteredModel.objects.all(), model)
    return Alias.objects.filter(model=found).select_related("model", "version__model")


def alias_get(*, model: str, name: str) -> Alias:
    """Return one alias with its version; raises NotFound, which names the existing aliases."""
    alias = Alias.objects.filter(model__name=model, name=name).select_related("model", "version__model").first()
    if alias is None:
        known = sorted(alias.name for alias in model_get(name=model).aliases.all())
        there = f"its aliases are {', '.join(known)}" if known else "it has no aliases"
        raise NotFound(f"model {model!r} has no alias {name!r}; {there}")
    return alias


def registered_by(versions: Iterable[ModelVersion]) -> dict[int, dict[str, set[str]]]:
    """Return, by version's id, who registered it or imported its files, each with the makers of that token."""
    actors = {version.pk: version.brought_by() for version in versions}
    makers = makers_of_tokens({actor for found in actors.values() for actor in found})
    return {pk: {actor: makers.get(actor, set()) for actor in found} for pk, found in actors.items()}


def approval_refusal(*, version: ModelVersion, approver: Approver) -> str:
    """Return why the user may not approve the version although the role allows it; empty where he may."""
    return decision_refusal(model=version.model.name, approver=approver) or refusal(
        approver, registered_by([version])[version.pk]
    )


def decision_refusal(*, model: str, approver: Approver) -> str:
    """Return why the user's token decides nothing about versions of the model; empty where it may."""
    return approver.refusal or signed_in_refusal(approver, demands_on(Owned.MODEL, [model])[model])


def versions_to_approve(*, only: Q, approver: Approver, limit: int) -> list[ModelVersion]:
    """Return READY versions that wait for approval and that the user may approve, newest first.

    For a user who registered many himself, those of others are searched among the newest 60 only.

    Args:
        only: a condition on versions: of those on which the user's role lets him decide.
    """
    rows = _to_approve().filter(only)
    brought = Prefetch("imports", ModelImport.objects.only("version", "created_by"))
    rows = rows.select_related("model").only("number", "created_at", "created_by", "model__name")
    newest = rows.prefetch_related(brought).order_by("-pk")[:_LOOKED_THROUGH]
    behind, demands = registered_by(newest), demands_on(Owned.MODEL, {version.model.name for version in newest})
    decidable = (each for each in newest if not signed_in_refusal(approver, demands[each.model.name]))
    return [version for version in decidable if not refusal(approver, behind[version.pk])][:limit]


def newest_to_approve() -> list[int]:
    """Return the ids of the newest versions that wait for approval, as a change marker for pages."""
    return list(_to_approve().order_by("-pk").values_list("pk", flat=True)[:_LOOKED_THROUGH])


def versions_to_check(*, now: datetime, limit: int) -> list[int]:
    """Return the ids of versions whose check is due, in turns of the teams that own the models.

    A team whose last check began longest ago is first, and a check that runs counts as its team's turn.
    """
    owners = Ownership.objects.filter(kind=Owned.MODEL, name=OuterRef("model__name"))
    of_teams = ModelVersion.objects.annotate(
        team=Coalesce(Subquery(owners.values("team__name")[:1]), Value(DEFAULT_TEAM))
    )
    pending = of_teams.filter(status=Status.PENDING.value)
    oldest = Window(RowNumber(), partition_by=F("team"), order_by=["next_check_at", "pk"])
    due = pending.filter(next_check_at__lte=now).annotate(turn=oldest).filter(turn__lte=limit)
    running = Counter(pending.filter(next_check_at__gt=now).exclude(claim=None).values_list("team", flat=True))
    recent = (
        of_teams.filter(check_begun_at__gt=now - _TURNS_REMEMBERED).values("team").annotate(at=Max("check_begun_at"))
    )
    last = {row["team"]: row["at"] for row in recent}
    waiting = [
        (turn + running[team], last.get(team, now - _TURNS_REMEMBERED), at, pk)
        for pk, team, turn, at in due.values_list("pk", "team", "turn", "next_check_at")
    ]
    return [pk for *_, pk in sorted(waiting)[:limit]]


def rows_of_earlier_versions(version_id: int) -> int:
    """Return the maximum rows of a request to an earlier READY version of the same model; 0 for none."""
    itself = ModelVersion.objects.filter(pk=version_id)
    earlier = ModelVersion.objects.filter(
        model__in=itself.values("model"), number__lt=itself.values("number"), status=Status.READY.value
    )
    signatures = earlier.order_by("-number").values_list("signature", flat=True)[:_EARLIER]
    return max((rows for each in signatures if type(rows := each.get("max_batch_size")) is int), default=0)


def is_being_checked(*, digest: str) -> bool:
    """Return whether the check of a version with these files is still open."""
    return ModelVersion.objects.filter(status=Status.PENDING.value, digest=digest).exists()


def import_list(*, model: str) -> QuerySet[ModelImport]:
    """Return the imports of that model, which need not exist yet."""
    return ModelImport.objects.filter(model=model).select_related("version")


def models_coming() -> QuerySet[ModelImport]:
    """Return running imports of models without a version, which no list of models has."""
    named = RegisteredModel.objects.filter(name=OuterRef("model"))
    pending = ModelImport.objects.filter(status=ImportStatus.PENDING.value)
    return pending.filter(~Exists(named)).order_by("-pk")


def import_get(*, model: str, import_id: int) -> ModelImport:
    """Return one import; raises NotFound."""
    found = import_list(model=model).filter(pk=import_id).first()
    if found is None:
        raise NotFound(f"model {model!r} has no import {import_id}; what ended long ago is forgotten")
    return found


def _found(models: QuerySet[RegisteredModel], name: str) -> RegisteredModel:
    model = models.filter(name=name).first()
    if model is None:
        raise NotFound(f"there is no model {name!r}; register its first version or create it")
    return model


def _to_approve() -> QuerySet[ModelVersion]:
    undecided = ModelVersion.objects.filter(status=Status.READY.value, approval=Approval.UNREVIEWED.value)
    return undecided.filter(model__requires_approval=True)


def _versions() -> QuerySet[ModelVersion]:
    return ModelVersion.objects.select_related("model").prefetch_related("aliases")
