"""Pages of model pools."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from accounts.auth.access import Place, require, visible
from accounts.auth.permissions import page_scope, page_token
from accounts.domain.roles import Owned
from accounts.domain.scopes import Scope
from pools.domain.figures import slowest
from pools.selectors import model_pool, pool_figures, pool_get, pool_members, pool_query, with_copies

_POOLS_SHOWN, _MODELS_SHOWN, _SLOWEST_SHOWN, _SERVICES_SHOWN = 100, 25, 5, 50


@never_cache
@require_safe
@page_scope(Scope.READ)
def pool_list_page(request: HttpRequest) -> HttpResponse:
    """Show the model pools."""
    pools = pool_query().filter(visible(page_token(request), Owned.NAMESPACE, "namespace"))
    found = list(pools.order_by("namespace", "name")[: _POOLS_SHOWN + 1])
    context = {
        "rows": [(pool, model_pool(pool)) for pool in found[:_POOLS_SHOWN]],
        "are_more": len(found) > _POOLS_SHOWN,
        "shown": _POOLS_SHOWN,
    }
    return render(request, "pools/pool_list.html", context)


@never_cache
@require_safe
@page_scope(Scope.READ)
def pool_page(request: HttpRequest, namespace: str, name: str) -> HttpResponse:
    """Show a pool: its replicas, the memory of its models, loads and evictions, and the services in it."""
    require(page_token(request), Scope.READ, Place.namespace(namespace))
    pool = pool_get(namespace=namespace, name=name)
    seen = pool_figures(pool, now=timezone.now())
    models = seen.total.models
    context = {
        "pool": pool,
        "shared_with": model_pool(pool).shared_with,
        "total": seen.total,
        "replicas": seen.replicas,
        "advice": seen.advice,
        "problem": seen.problem,
        "models": models[:_MODELS_SHOWN],
        "models_count": len(models),
        "slowest": slowest(models, _SLOWEST_SHOWN),
        "members": with_copies(pool, pool_members(pool).order_by("namespace", "name")[:_SERVICES_SHOWN]),
        "services_shown": _SERVICES_SHOWN,
    }
    return render(request, "pools/pool.html", context)
