"""The rooms of the code and their order: the one table that the import rules are read from.

A new room, or a new kind of module in an app, is a word here. Names of rooms that are still to come may be here.
"""

from functools import cache

LEVELS: tuple[tuple[str, ...], ...] = (
    ("fairlead",),
    ("control_plane",),
    ("console",),
    ("gpus", "recordings", "model_jobs", "pools", "access", "feedback", "fleet", "custom_resources"),
    ("deployments",),
    ("usage", "sealed_secrets"),
    ("clusters",),
    ("placement",),
    ("events",),
    ("registry",),
    ("jobs",),
    ("accounts",),
    ("integrations",),
    ("common",),
)
"""Rooms from above to below: each imports what is below it, and none beside it."""
PROGRAMS = ("fairlead_cli", "serving_runtime", "releases")
"""Rooms that import no other and that none imports, but for what is shared."""
SHARED = "serving_runtime.shared"
_NOT_APPS = {"fairlead", "control_plane", "placement", "integrations", "common"}
APPS = frozenset(room for each in LEVELS for room in each) - _NOT_APPS
"""Rooms whose modules are in layers."""
LAYERS: tuple[tuple[str, ...], ...] = (
    ("apps", "management"),
    ("urls",),
    ("api", "web"),
    ("tasks",),
    ("turns",),
    ("auth",),
    ("services",),
    ("reconcile",),
    ("selectors",),
    ("views", "mapping"),
    ("hooks", "storage"),
    ("models",),
    ("domain",),
)
"""Modules and packages of an app from above to below, which import as rooms do."""
SUB_ROOMS = frozenset({"builds", "tunings", "trials"})
"""Folders of an app that have the layers inside."""
_WEB = {"templatetags": "web"}
"""Folders whose names Django gives, and the layer that they are part of."""
OUTSIDE = frozenset({"migrations"})
"""Parts of an app that no layer has."""
PURE_ROOMS = ("placement",)
IMPURE = ("django", "celery", "kubernetes", "integrations")
"""What pure code imports nothing of, directly or through others."""
VALUES = (
    "integrations.clusters.base",
    "integrations.clusters.kubernetes.access",
    "integrations.clusters.kubernetes.manifests",
    "integrations.clusters.kubernetes.options",
)
"""Value types and pure renderers that pure code may import nevertheless."""
EDGES = frozenset({"api", "auth", "web", "tasks", "turns", "management", "apps"})
"""Layers that read clock and randomness for the others."""
EDGE_MODULES = frozenset({"common.randomness"})
"""Further modules that do."""
EDGE_ROOMS = frozenset({"control_plane", "fairlead", "fairlead_cli", "integrations"})


def level(room: str) -> int | None:
    """Return the place of a room from above; None where the table does not have it."""
    return next((place for place, each in enumerate(LEVELS) if room in each), None)


@cache
def layer(module: str) -> int | None:
    """Return the place of an app's module from above; None where no layer has it."""
    part = part_of(module)
    found = next((place for place, each in enumerate(LAYERS) if part in each), None)
    return len(LAYERS) - 1 if found is None and not part else found


def part_of(module: str) -> str:
    """Return the word of a module's name that says its layer; empty for an app itself and for a folder of layers."""
    _, *inside = (_WEB.get(word, word) for word in module.split("."))
    return next((word for word in inside if word not in SUB_ROOMS), "")


def is_pure(module: str) -> bool:
    """Return whether a module's path says that it is pure."""
    return module.split(".", maxsplit=1)[0] in PURE_ROOMS or part_of(module) == "domain"


def is_edge(module: str) -> bool:
    """Return whether a module may read the clock: it calls code that takes `now` from it."""
    return module.split(".", maxsplit=1)[0] in EDGE_ROOMS or part_of(module) in EDGES or module in EDGE_MODULES
