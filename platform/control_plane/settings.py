"""Settings of the control plane, all from `FAIRLEAD_*` variables (table in `docs/reference/settings.md`).

Without any variable this is the embedded mode: SQLite, a broker in the file system and the local cluster driver, with
all state under `FAIRLEAD_HOME`. Reasons for the SQLite and broker options: `docs/decisions/`.
"""

import os
from datetime import timedelta
from pathlib import Path

from accounts.domain.roles import Role
from control_plane import env
from integrations.clusters.local.agent.replicas.memory_limit import Limit
from integrations.sandbox.policy import Mode
from serving_runtime.shared import json_log

ROOT = Path(__file__).resolve().parents[2]
HOME = Path(env.text("FAIRLEAD_HOME", ".fairlead")).resolve()

DEBUG = env.flag("FAIRLEAD_DEBUG", default=False)
SECRET_KEY = env.secret("FAIRLEAD_SECRET_KEY", required=True)
SECRET_KEY_FALLBACKS = env.secret("FAIRLEAD_SECRET_KEY_FALLBACKS").split()
PUBLIC_URL = env.origin("FAIRLEAD_URL", "http://127.0.0.1:8080")
ALLOWED_HOSTS = [
    *env.hosts("FAIRLEAD_ALLOWED_HOSTS", ["127.0.0.1", "localhost", "[::1]"]),
    env.host_of(PUBLIC_URL),
]
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL]
SECURE_COOKIES = PUBLIC_URL.startswith("https://")

# --- what is installed -----------------------------------------------------------------------------------------------
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "control_plane.apps.ControlPlaneConfig",
    "accounts.apps.AccountsConfig",
    "registry.apps.RegistryConfig",
    "clusters.apps.ClustersConfig",
    "events.apps.EventsConfig",
    "usage.apps.UsageConfig",
    "sealed_secrets.apps.SealedSecretsConfig",
    "deployments.apps.DeploymentsConfig",
    "custom_resources.apps.CustomResourcesConfig",
    "fleet.apps.FleetConfig",
    "pools.apps.PoolsConfig",
    "feedback.apps.FeedbackConfig",
    "gpus.apps.GpusConfig",
    "access.apps.AccessConfig",
    "recordings.apps.RecordingsConfig",
    "model_jobs.apps.ModelJobsConfig",
]
MIDDLEWARE = [
    "common.http.request_id.RequestIdMiddleware",
    "control_plane.monitoring.requests.RequestMiddleware",
    "common.http.unmatched_paths.NoZeroBytesMiddleware",
    "control_plane.security.StrictTransportSecurityMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "common.http.static.StaticFilesMiddleware",
    "control_plane.security.ContentSecurityPolicyMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "common.http.error_pages.ErrorPageMiddleware",
    "accounts.auth.rate_limits.RateLimitMiddleware",
]
ROOT_URLCONF = "control_plane.urls"
ASGI_APPLICATION = "control_plane.asgi.application"
AUTH_USER_MODEL = "accounts.User"
LOGIN_URL = "accounts:signin"
LOGIN_REDIRECT_URL = "deployments:home"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [ROOT / "frontend" / "templates"],
        "APP_DIRS": False,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "console.web.navigation.navigation",
            ],
        },
    },
]

# --- state ------------------------------------------------------------------------------------------------------------
DATABASE_URL = env.secret("FAIRLEAD_DATABASE_URL", f"sqlite:///{HOME / 'fairlead.sqlite3'}")
DATABASES = {"default": env.database(DATABASE_URL)}
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    # Immediate transactions: with several writers, deferred ones fail on upgrade to a write lock without waiting.
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    }
    # A file, since tests start processes that must see it.
    DATABASES["default"]["TEST"] = {"NAME": str(HOME / f"test-{os.getpid()}.sqlite3")}

ARTIFACTS_FOLDER = Path(env.text("FAIRLEAD_ARTIFACTS_FOLDER", str(HOME / "artifacts")))
RECORDINGS_FOLDER = HOME / "recordings"
PAYLOADS_FOLDER = HOME / "payloads"
MAX_ARTIFACT_BYTES = env.integer("FAIRLEAD_MAX_ARTIFACT_BYTES", 10 * 2**30, minimum=1)
MAX_ARTIFACT_FILES = env.integer("FAIRLEAD_MAX_ARTIFACT_FILES", 1000, minimum=1)
IMPORT_FROM = env.prefixes("FAIRLEAD_IMPORT_FROM")
IMPORT_TIMEOUT_S = env.integer("FAIRLEAD_IMPORT_TIMEOUT_S", 3600, minimum=1)
# At least an hour: files are there before their version is registered.
RETAIN_UNUSED_ARTIFACTS = timedelta(hours=env.integer("FAIRLEAD_RETAIN_UNUSED_ARTIFACTS_HOURS", 1, minimum=1))
RETAIN_EVENTS = timedelta(days=env.integer("FAIRLEAD_RETAIN_EVENTS_DAYS", 90, minimum=1))
RETAIN_MEASUREMENTS = timedelta(days=env.integer("FAIRLEAD_RETAIN_MEASUREMENTS_DAYS", 90, minimum=1))

# --- the cluster ------------------------------------------------------------------------------------------------------
CLUSTER_FOLDER = HOME / "cluster"
ALLOW_PYTHON_MODELS = env.flag("FAIRLEAD_ALLOW_PYTHON_MODELS", default=False)
# Read where processes start (integrations/sandbox); here so that an invalid value is refused at the start.
SANDBOX = env.choice("FAIRLEAD_SANDBOX", Mode.BEST, tuple(Mode))
MEMORY_LIMIT = env.choice("FAIRLEAD_MEMORY_LIMIT", Limit.MACHINE, tuple(Limit))  # read by the local agent, as the next
MEMORY_RESERVE_MIB = env.integer("FAIRLEAD_MEMORY_RESERVE_MIB", 1024)
# Who may call new services; `fairlead up` sets it by where its gateway listens.
DEFAULT_ACCESS = env.choice("FAIRLEAD_DEFAULT_ACCESS", "public", ("public", "authenticated"))
# Where images that service files name may come from; empty for anywhere.
ALLOWED_REGISTRIES = env.registries("FAIRLEAD_ALLOWED_REGISTRIES")
# Each folder in one of them is a program that services of the local cluster may run; empty runs none.
PROGRAM_FOLDERS = env.program_folders("FAIRLEAD_PROGRAM_FOLDERS")
DEFAULT_CLUSTER = env.text("FAIRLEAD_DEFAULT_CLUSTER", "local")
# The model pool, NAMESPACE/NAME, of services that may have no replicas and name no pool; empty for none.
DEFAULT_MODEL_POOL = env.model_pool("FAIRLEAD_DEFAULT_MODEL_POOL")
KUBECONFIG_FOLDER = env.folder("FAIRLEAD_KUBECONFIG_FOLDER")
# Programs that kubeconfigs may run for a token; None: those of mounted kubeconfigs, which the operator wrote.
EXEC_PLUGINS = env.programs("FAIRLEAD_EXEC_PLUGINS")
GATEWAY_URL = env.text("FAIRLEAD_GATEWAY_URL", "http://127.0.0.1:8090").rstrip("/")
# The file that clients trust where the gateway's certificate is self-made; `fairlead up` sets it.
GATEWAY_CA = env.text("FAIRLEAD_GATEWAY_CA", "")
# For the local agent (`integrations.clusters.local.tls`): TLS at its gateway.
GATEWAY_TLS = env.flag("FAIRLEAD_GATEWAY_TLS", default=False)
GATEWAY_CERTIFICATE = env.text("FAIRLEAD_GATEWAY_CERTIFICATE", "")
GATEWAY_KEY = env.text("FAIRLEAD_GATEWAY_KEY", "")
GATEWAY_CLIENT_CA = env.text("FAIRLEAD_GATEWAY_CLIENT_CA", "")
TRY_TIMEOUT_S = env.integer("FAIRLEAD_TRY_TIMEOUT_S", 30, minimum=1)
# 0: 20 on Kubernetes, one for each two cores on this machine.
MODEL_CHECKS_AT_ONCE = env.integer("FAIRLEAD_MODEL_CHECKS_AT_ONCE", 0, maximum=100)
MODEL_CHECK_TIMEOUT_S = env.integer("FAIRLEAD_MODEL_CHECK_TIMEOUT_S", 120, minimum=1)

# --- measurements of rollouts from elsewhere -------------------------------------------------------------------------
PROMETHEUS_URL = env.web_address("FAIRLEAD_PROMETHEUS_URL")
PROMETHEUS_TOKEN = env.secret("FAIRLEAD_PROMETHEUS_TOKEN")
PROMETHEUS_CA = env.secret("FAIRLEAD_PROMETHEUS_CA")
PROMETHEUS_TENANT = env.tenant("FAIRLEAD_PROMETHEUS_TENANT")

# --- tasks ------------------------------------------------------------------------------------------------------------
BROKER_URL = env.secret("FAIRLEAD_BROKER_URL", "filesystem://localhost")
EGRESS_ALLOWED_NETWORKS = env.networks("FAIRLEAD_EGRESS_ALLOWED_NETWORKS", earlier="FAIRLEAD_WEBHOOK_ALLOWED_NETWORKS")
SCALE_DOWN_WINDOW = timedelta(seconds=env.integer("FAIRLEAD_SCALE_DOWN_WINDOW_S", 300))
RECONCILE_INTERVAL_S = 2.0
# Turns of the watcher to services of Kubernetes clusters; SQLite lets one of them write at a time.
TURNS_AT_ONCE = env.integer(
    "FAIRLEAD_TURNS_AT_ONCE", 24 if DATABASES["default"]["ENGINE"].endswith("postgresql") else 4
)
METRICS_ACCESS = env.choice("FAIRLEAD_METRICS_ACCESS", "anyone", ["anyone", "token"])
WEB_METRICS_ADDRESS = env.address("FAIRLEAD_WEB_METRICS_ADDRESS")
METRICS_ADDRESS = env.address("FAIRLEAD_METRICS_ADDRESS")
BEAT_METRICS_ADDRESS = env.address("FAIRLEAD_BEAT_METRICS_ADDRESS")
WATCHER_METRICS_ADDRESS = env.address("FAIRLEAD_WATCHER_METRICS_ADDRESS")

# --- usage on Kubernetes ----------------------------------------------------------------------------------------------
USAGE_COLLECTOR_ADDRESS = env.address("FAIRLEAD_USAGE_COLLECTOR_ADDRESS") or ("127.0.0.1", 4317)
USAGE_COLLECTOR_TOKEN = env.secret("FAIRLEAD_USAGE_COLLECTOR_TOKEN")
USAGE_COLLECTOR_TLS_FOLDER = env.folder("FAIRLEAD_USAGE_COLLECTOR_TLS_FOLDER")
USAGE_COLLECTOR_METRICS_ADDRESS = env.address("FAIRLEAD_USAGE_COLLECTOR_METRICS_ADDRESS")

# --- services that sleep on Kubernetes --------------------------------------------------------------------------------
WAKER_ADDRESS = env.address("FAIRLEAD_WAKER_ADDRESS") or ("127.0.0.1", 9002)
WAKER_NAMESPACES = env.names("FAIRLEAD_WAKER_NAMESPACES", [])
WAKER_METRICS_ADDRESS = env.address("FAIRLEAD_WAKER_METRICS_ADDRESS")

# --- sinks of the audit log -------------------------------------------------------------------------------------------
AUDIT_SYSLOG = env.syslog("FAIRLEAD_AUDIT_SYSLOG")
AUDIT_SYSLOG_CA = env.secret("FAIRLEAD_AUDIT_SYSLOG_CA")
AUDIT_WEBHOOK = env.url("FAIRLEAD_AUDIT_WEBHOOK")
AUDIT_WEBHOOK_SECRET = env.secret("FAIRLEAD_AUDIT_WEBHOOK_SECRET")

# --- sign-in ----------------------------------------------------------------------------------------------------------
TOKEN_SIGNIN = env.flag("FAIRLEAD_TOKEN_SIGNIN", default=True)
OIDC_ISSUER = env.web_address("FAIRLEAD_OIDC_ISSUER")
OIDC_CLIENT_ID = env.text("FAIRLEAD_OIDC_CLIENT_ID")
OIDC_CLIENT_SECRET = env.secret("FAIRLEAD_OIDC_CLIENT_SECRET")
OIDC_SCOPES = env.names("FAIRLEAD_OIDC_SCOPES", ["openid", "profile", "email"])
OIDC_USERNAME_CLAIM = env.text("FAIRLEAD_OIDC_USERNAME_CLAIM", "preferred_username")
OIDC_GROUPS_CLAIM = env.text("FAIRLEAD_OIDC_GROUPS_CLAIM")
OIDC_GROUP_ROLES = env.group_roles("FAIRLEAD_OIDC_GROUP_ROLES")
OIDC_DEFAULT_ROLE = env.choice("FAIRLEAD_OIDC_DEFAULT_ROLE", "viewer", ["none", *Role])
OIDC_LABEL = env.text("FAIRLEAD_OIDC_LABEL", "Sign in with single sign-on")
OIDC_LONGEST_OUTAGE = (
    timedelta(hours=env.integer("FAIRLEAD_OIDC_OUTAGE_HOURS", 0)) if env.text("FAIRLEAD_OIDC_OUTAGE_HOURS") else None
)
OIDC_SESSION = timedelta(hours=env.integer("FAIRLEAD_OIDC_SESSION_HOURS", 12, minimum=1))

# --- limits of requests, 0 for none -----------------------------------------------------------------------------------
TOKEN_REQUESTS_PER_MINUTE = env.integer("FAIRLEAD_TOKEN_REQUESTS_PER_MINUTE", 3000)
ANONYMOUS_REQUESTS_PER_MINUTE = env.integer("FAIRLEAD_ANONYMOUS_REQUESTS_PER_MINUTE", 600)
SIGNIN_FAILURES_PER_MINUTE = env.integer("FAIRLEAD_SIGNIN_FAILURES_PER_MINUTE", 30)

# Live streams of pages, which stay open.
STREAMS_PER_TOKEN = env.integer("FAIRLEAD_STREAMS_PER_TOKEN", 20)
STREAMS_PER_PROCESS = env.integer("FAIRLEAD_STREAMS_PER_PROCESS", 500)

# --- API --------------------------------------------------------------------------------------------------------------
TOKEN_LIFETIME = timedelta(days=env.integer("FAIRLEAD_TOKEN_LIFETIME_DAYS", 90, minimum=1))
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "accounts.auth.authentication.TokenAuthentication",
        "accounts.auth.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["accounts.auth.permissions.HasScope"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["common.http.parsers.StrictJSONParser", "common.http.parsers.YAMLParser"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "common.http.parsers.Negotiation",
    "DEFAULT_FILTER_BACKENDS": ["common.http.filters.ListFilters"],
    "DEFAULT_PAGINATION_CLASS": "common.http.pagination.CursorPagination",
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_METADATA_CLASS": None,  # OPTIONS: the OpenAPI document has more, and every address
    "EXCEPTION_HANDLER": "common.http.api_errors.exception_handler",
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Fairlead",
    "VERSION": "v1",
    "DESCRIPTION": "Model registry, services and rollouts.",
    "SERVE_INCLUDE_SCHEMA": False,
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "common.http.openapi.document_errors",
    ],
}
# A model upload is streamed by its view; nothing else may be large.
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * 2**20

# --- pages ------------------------------------------------------------------------------------------------------------
STATIC_URL = "/static/"
STATICFILES_DIRS = [ROOT / "frontend" / "dist"] if (ROOT / "frontend" / "dist").is_dir() else []
WHITENOISE_USE_FINDERS = True  # the bundle is served from where esbuild put it; nothing to collect
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en-us"
USE_I18N = False

# --- safety -----------------------------------------------------------------------------------------------------------
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_COOKIES
# Browsers take a cookie of this prefix from this very host alone, over TLS: no other name of the domain can set it.
SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = (
    f"__Host-{name}" if SECURE_COOKIES else name for name in ("sessionid", "csrftoken")
)
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

# --- logs and traces --------------------------------------------------------------------------------------------------
LOG_FORMAT = env.choice("FAIRLEAD_LOG_FORMAT", json_log.TEXT, json_log.FORMATS)
OTLP_ENDPOINT = env.collector("FAIRLEAD_OTLP_ENDPOINT")
# A line for every scrape of a replica and every sweep would bury the rest.
_QUIET = ("httpx", "celery.app.trace", "celery.beat", "celery.worker.strategy")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {
        "request_id": {"()": "common.http.request_id.RequestIdFilter"},
        "fields": {"()": "common.log_fields.FieldsFilter"},
        "trace": {"()": "integrations.otlp.tracing.TraceIdsFilter"},
    },
    "formatters": {
        json_log.TEXT: {"format": "{asctime} {levelname} {name} [{request_id}] {message}", "style": "{"},
        json_log.JSON: {"()": json_log.JsonFormatter},
    },
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": LOG_FORMAT,
            "filters": ["request_id", "fields", "trace"],
        }
    },
    "root": {"handlers": ["stderr"], "level": env.text("FAIRLEAD_LOG_LEVEL", "INFO")},
    # uvicorn's own handlers write text, and its access log query strings, which may hold secrets.
    "loggers": {
        **{name: {"level": "WARNING"} for name in _QUIET},
        **{name: {"handlers": [], "propagate": True} for name in ("uvicorn", "uvicorn.error")},
        "uvicorn.access": {"handlers": [], "level": "WARNING"},
    },
}
