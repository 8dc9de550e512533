"""Storage page: models by disk usage, unreferenced versions, and files without a version."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts.auth.access import Place, is_administrator, require, visible
from accounts.auth.permissions import page_actor, page_scope, page_token
from accounts.domain.roles import Owned
from accounts.domain.scopes import Scope
from common.http.error_pages import leave
from registry.selectors.disk_usage import MODELS_SHOWN, VERSIONS_SHOWN, model_spaces, store_space, unnamed_versions
from registry.services import artifacts_collect
from registry.templatetags.registry_formats import size


@never_cache
@require_safe
@page_scope(Scope.READ)
def storage_page(request: HttpRequest) -> HttpResponse:
    """Show the disk usage of the models that the caller may see; to administrators, of the store too."""
    token = page_token(request)
    seen = visible(token, Owned.MODEL, "model__name")
    models = model_spaces(seen)
    largest = max((each.size_bytes for each in models), default=0) or 1
    context = {
        "store": store_space(now=timezone.now()) if is_administrator(token) else None,
        "models": [(each, 100 * each.size_bytes / largest) for each in models],
        "unnamed": unnamed_versions(seen),
        "models_shown": MODELS_SHOWN,
        "versions_shown": VERSIONS_SHOWN,
    }
    return render(request, "registry/storage.html", context)


@require_POST
@page_scope(Scope.ADMIN)
def storage_collect_action(request: HttpRequest) -> HttpResponse:
    """Delete the files without a version, and redirect to the page."""
    require(page_token(request), Scope.ADMIN, Place.installation())
    deleted = artifacts_collect(now=timezone.now(), actor=page_actor(request))
    freed = size(sum(each.size_bytes for each in deleted))
    messages.success(request, f"Deleted {len(deleted)} artifact{'' if len(deleted) == 1 else 's'}: {freed}.")
    return leave(request, "registry:storage")
