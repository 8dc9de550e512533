"""Tests of the control plane that run on SQLite too: the reviewed list, each entry with what it proves there.

All tests run once, on PostgreSQL where it is installed. A second pass, `make test-sqlite`, runs these on SQLite with
the broker in the file system, as the embedded mode does. They have the mark `sqlite`. A test belongs here if its
outcome depends on what databases or brokers do differently; tests of rules, forms and pages do not.

python -m tests.sqlite_pass: writes the list as arguments for pytest.
"""

import sys
from pathlib import Path

TESTS = Path(__file__).parent
_RACES = "threads with connections of their own: SQLite has one lock for all, PostgreSQL one per row"
_CLAIMS = "one worker gets a job, whose lease ends with a transaction"
_THREADS = "the application's threads read what the test committed, while others write"
_JSON = "JSON columns are text on SQLite"
_ORDER = "ordering of nulls, ties and text, pages that continue at a value"
_SEARCH = "search in text: upper and lower case, wildcards, no trigrams"
_MIGRATIONS = "tables are rebuilt on SQLite, altered on PostgreSQL"
_BROKER = "the broker in the file system"
_ERRORS = "the database's own errors"

ALSO_ON_SQLITE = {
    "accounts/test_idempotency.py": _RACES,
    "accounts/services/test_audit_chain.py": _JSON,
    "accounts/services/test_audit_sinks.py": _CLAIMS,
    "accounts/services/test_oidc_users.py": _RACES,
    "accounts/services/test_teams.py": _RACES,
    "common/http/test_asgi.py": _THREADS,
    "common/db/test_count.py": "a count that ends at a limit, in a subquery",
    "common/http/test_filters.py": _SEARCH,
    "common/http/test_pagination.py": _ORDER,
    "feedback/reconcile/test_kept_answers.py": "inserts that leave out what is there, JSON and binary columns",
    "feedback/services/test_forget_answers.py": "deletes of many rows at once, by an index",
    "feedback/services/test_join.py": "rows are written one by one on SQLite, as lists on PostgreSQL",
    "feedback/services/test_join_races.py": _RACES,
    "feedback/services/test_labels.py": _JSON,
    "model_jobs/builds/test_api.py": _THREADS,
    "recordings/api/test_replays.py": _THREADS,
    "model_jobs/trials/test_api.py": _THREADS,
    "model_jobs/tunings/test_api.py": _THREADS,
    "deployments/api/test_workload_exchanges.py": _THREADS,
    "model_jobs/builds/test_builds.py": _CLAIMS,
    "events/services/test_delivery.py": _CLAIMS,
    "deployments/reconcile/test_schedule.py": _ORDER,
    "deployments/web/test_events.py": _THREADS,
    "deployments/reconcile/test_hints.py": _BROKER,
    "console/web/test_home_page.py": _ORDER,
    "deployments/reconcile/test_lease.py": _CLAIMS,
    "deployments/reconcile/participants/test_gates.py": _CLAIMS,
    "deployments/reconcile/test_races.py": _RACES,
    "deployments/reconcile/test_turn.py": _CLAIMS,
    "deployments/turns/test_ended_process.py": _CLAIMS,
    "deployments/reconcile/test_reconciler.py": "the reconciler's transactions and leases, whole lives of services",
    "recordings/web/test_recording_views.py": _THREADS,
    "recordings/services/test_run_replay.py": _CLAIMS,
    "deployments/services/test_retention.py": "deletes of many rows at once",
    "deployments/test_searching.py": _SEARCH,
    "deployments/test_selectors.py": _ORDER,
    "deployments/reconcile/participants/test_traffic.py": _JSON,
    "model_jobs/trials/test_trials.py": _CLAIMS,
    "model_jobs/tunings/test_tunings.py": _CLAIMS,
    "control_plane/test_artifacts_moved.py": "a restored home in another folder",
    "control_plane/test_health.py": _ERRORS,
    "control_plane/test_lists.py": "every filter and ordering of every list is valid SQL",
    "control_plane/monitoring/test_metrics.py": _BROKER,
    "control_plane/test_migrations.py": _MIGRATIONS,
    "control_plane/test_openapi.py::test_made_up_requests_get_answers_of_the_documented_form": _ERRORS,
    "control_plane/test_wait_for.py": _MIGRATIONS,
    "control_plane/test_web_is_replaced.py": _THREADS,
    "control_plane/test_workers.py": _BROKER,
    "registry/services/test_annotations.py": _JSON,
    "registry/services/test_version_checks.py": _CLAIMS,
    "registry/test_download.py": _THREADS,
    "registry/services/test_governance.py": _ERRORS,
    "registry/services/test_imports.py": _CLAIMS,
    "registry/test_narrowed_versions.py": _JSON,
    "registry/test_services.py": _RACES,
    "registry/test_tasks.py": _CLAIMS,
    "registry/test_views.py": _SEARCH,
    "usage/services/test_reading.py": _CLAIMS,
}
"""Test modules, or single tests of one, by their path in tests/."""


def is_of_second_pass(nodeid: str) -> bool:
    """Return whether the list names a test, or its module."""
    test = nodeid.partition("[")[0].removeprefix("tests/")
    return test in ALSO_ON_SQLITE or test.partition("::")[0] in ALSO_ON_SQLITE


if __name__ == "__main__":
    sys.stdout.write("".join(f"tests/{entry}\n" for entry in ALSO_ON_SQLITE))
