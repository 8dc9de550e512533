"""Version comparison pages: choose two versions of a model and show their differences."""

from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from accounts.auth.access import Place, require
from accounts.auth.permissions import page_scope, page_token
from accounts.domain.scopes import Scope
from common.errors import InvalidInput
from registry import selectors
from registry.web.version_diff import beside

_CHOICES_SHOWN = 100


@never_cache
@require_safe
@page_scope(Scope.READ)
def model_compare_page(request: HttpRequest, name: str) -> HttpResponse:
    """Choose two versions, `version` and the one `with` which it is compared; redirect once both are chosen."""
    require(page_token(request), Scope.READ, Place.model(name))
    asked = {each: request.GET.get(each, "").strip() for each in ("version", "with")}
    is_twice = asked["version"] == asked["with"] != ""
    if all(asked.values()) and not is_twice:
        number, other = (_number(text, field) for field, text in asked.items())
        address = reverse("registry:version-compare", args=(name, number))
        return redirect(f"{address}?{urlencode({'with': other})}")
    versions = list(selectors.version_list(model=name).order_by("-number")[: _CHOICES_SHOWN + 1])
    new, old = _proposed([str(version.number) for version in versions], asked["version"], asked["with"])
    context = {
        "name": name,
        "versions": versions[:_CHOICES_SHOWN],
        "are_all": len(versions) <= _CHOICES_SHOWN,
        "chosen": new,
        "other": old,
        "is_twice": is_twice,
    }
    return render(request, "registry/model_compare.html", context)


@never_cache
@require_safe
@page_scope(Scope.READ)
def version_compare_page(request: HttpRequest, name: str, number: int) -> HttpResponse:
    """Show a version beside the one that `with` names: changes for clients, facts and measurements."""
    require(page_token(request), Scope.READ, Place.model(name))
    other = request.GET.get("with", "").strip()
    if not other:
        return redirect(f"{reverse('registry:model-compare', args=(name,))}?{urlencode({'version': number})}")
    new = selectors.model_version_get(model=name, number=number)
    old = selectors.model_version_get(model=name, number=_number(other, "with"))
    context = {"old": old, "new": new, "versions": (old, new), "beside": beside(old, new)}
    return render(request, "registry/version_compare.html", context)


def _proposed(numbers: list[str], new: str, old: str) -> tuple[str, str]:
    """Return the numbers to compare, of a list that is newest first: the requested ones, else the next older one."""
    new = new or next((number for number in numbers if number != old), "")
    if not old or old == new:
        before = numbers[numbers.index(new) + 1 :] if new in numbers else []
        old = next((number for number in [*before, *numbers] if number != new), "")
    return new, old


def _number(text: str, field: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise InvalidInput(f"{field} is {text[:40]!r}; expected the number of a version to compare with", field=field)
    return int(text)
