"""Command table: every command, in the order of `fairlead --help`."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass

from fairlead_cli.commands import (
    annotate,
    approvals,
    audit,
    backup,
    builds,
    clusters,
    comparison,
    completion,
    governance,
    imports,
    keys,
    logs,
    models,
    policies,
    pull,
    recordings,
    repartitions,
    replays,
    restart,
    rollouts,
    secret_key,
    services,
    session,
    storage,
    teams,
    tokens,
    trials,
    tunings,
    usage,
    users,
    webhooks,
)
from fairlead_cli.context import Call
from fairlead_cli.demo import command as demo
from fairlead_cli.up import command as up


def _nothing(_parser: argparse.ArgumentParser) -> None:
    """Add no arguments."""


@dataclass(frozen=True, slots=True)
class Command:
    """One command; its function's docstring is its help.

    Attributes:
        local: whether it works without a control plane, so it takes no `--url`.
        answers: whether it prints an answer that a program may read, so it takes `--output`.
    """

    words: str
    run: Callable[[Call], None]
    arguments: Callable[[argparse.ArgumentParser], None] = _nothing
    local: bool = False
    answers: bool = True

    @property
    def help(self) -> str:
        """Return the first paragraph of the function's docstring, a sentence."""
        return (self.run.__doc__ or "").split("\n\n")[0].strip()


NOUNS = {
    "models": "registered models",
    "versions": "versions of a registered model",
    "alias": "aliases that point to a version of a model",
    "storage": "storage used by model files",
    "services": "inference services",
    "policies": "rollout policies",
    "clusters": "clusters that run services",
    "repartitions": "MIG repartitions of nodes' GPUs",
    "recordings": "recorded requests and answers of services, kept for a limited time",
    "rollouts": "progressive rollouts of services to another version",
    "keys": "keys of callers of services",
    "tokens": "API tokens",
    "teams": "teams, which own namespaces and models",
    "users": "user accounts",
    "members": "members of teams, and their roles",
    "audit": "audit log of changes",
    "webhooks": "webhook subscriptions",
}
COMMANDS = (
    Command("up", up.run, up.add_arguments, local=True, answers=False),
    Command("demo", demo.run, demo.add_arguments, local=True, answers=False),
    Command("backup", backup.backup, backup.backup_arguments, local=True),
    Command("restore", backup.restore, backup.restore_arguments, local=True),
    Command("rotate-secret-key", secret_key.rotate, secret_key.arguments, local=True),
    Command("login", session.login, session.login_arguments),
    Command("whoami", session.whoami),
    Command("models push", models.push, models.push_arguments),
    Command("models imports", imports.list_imports, imports.list_arguments),
    Command("models stop-import", imports.stop, imports.stop_arguments),
    Command("models build", builds.build, builds.build_arguments),
    Command("models builds", builds.list_builds, tunings.version_option),
    Command("models stop-build", builds.stop, builds.stop_arguments),
    Command("models try", trials.try_version, trials.try_arguments),
    Command("models trials", trials.list_trials, tunings.version_option),
    Command("models stop-trial", trials.stop, trials.stop_arguments),
    Command("models tune", tunings.tune, tunings.tune_arguments),
    Command("models tunings", tunings.list_tunings, tunings.version_option),
    Command("models stop-tuning", tunings.stop, tunings.stop_arguments),
    Command("models pull", pull.pull, pull.pull_arguments),
    Command("models list", models.list_models, models.list_arguments),
    Command("models show", models.show_model, models.name_argument),
    Command("models describe", annotate.describe, annotate.describe_arguments),
    Command("models tag", annotate.tag, annotate.tag_arguments),
    Command("models compatible", annotate.compatible, annotate.compatible_arguments),
    Command("models require-approval", governance.require_approval, governance.rule_arguments),
    Command("models kept-rules", governance.list_kept_rules),
    Command("models remove-rules", governance.remove_kept_rules, models.name_argument),
    Command("models delete", models.delete_model, models.name_argument),
    Command("versions show", models.show_version, models.version_arguments),
    Command("versions approve", governance.approve, governance.approve_arguments),
    Command("versions decline", governance.decline, governance.decline_arguments),
    Command("versions recheck", models.recheck_version, models.recheck_arguments),
    Command("versions delete", models.delete_version, models.version_arguments),
    Command("alias set", models.set_alias, models.alias_arguments),
    Command("alias delete", models.delete_alias, models.alias_argument),
    Command("alias protect", governance.protect, models.alias_argument),
    Command("alias unprotect", governance.unprotect, models.alias_argument),
    Command("storage show", storage.show),
    Command("storage collect", storage.collect),
    Command("services apply", services.apply_service, services.apply_arguments),
    Command("services list", services.list_services, services.list_arguments),
    Command("services show", services.show_service, services.service_argument),
    Command("services logs", logs.logs, logs.logs_arguments),
    Command("services stop", services.stop_service, services.stop_arguments),
    Command("services resume", services.resume_service, services.resume_arguments),
    Command("services restart", restart.restart, restart.restart_arguments),
    Command("services replay", replays.replay, replays.replay_arguments),
    Command("services replays", replays.list_replays, services.service_argument),
    Command("services delete", services.delete_service, services.service_argument),
    Command("recordings start", recordings.start, recordings.start_arguments),
    Command("recordings list", recordings.list_recordings, services.service_argument),
    Command("recordings show", recordings.show, recordings.recording_arguments),
    Command("recordings stop", recordings.stop, recordings.recording_arguments),
    Command("recordings delete", recordings.delete, recordings.recording_arguments),
    Command("clusters apply", clusters.apply_cluster, clusters.apply_arguments),
    Command("clusters list", clusters.list_clusters),
    Command("clusters show", clusters.show_cluster, clusters.name_argument),
    Command("clusters check", clusters.check_cluster, clusters.check_arguments),
    Command("clusters gpus", clusters.show_gpus, clusters.name_argument),
    Command("clusters repartition", repartitions.propose, repartitions.propose_arguments),
    Command("clusters delete", clusters.delete_cluster, clusters.name_argument),
    Command("repartitions list", repartitions.list_repartitions, repartitions.list_arguments),
    Command("repartitions show", repartitions.show, repartitions.waiting_arguments),
    Command("repartitions approve", repartitions.approve, repartitions.approve_arguments),
    Command("repartitions decline", repartitions.decline, repartitions.decision_arguments),
    Command("repartitions abort", repartitions.abort, repartitions.decision_arguments),
    Command("policies apply", policies.apply_policy, policies.apply_arguments),
    Command("policies list", policies.list_policies),
    Command("policies show", policies.show_policy, policies.name_argument),
    Command("policies delete", policies.delete_policy, policies.name_argument),
    Command("rollouts start", rollouts.start, rollouts.start_arguments),
    Command("rollouts status", rollouts.status, rollouts.status_arguments),
    Command("rollouts approve", approvals.approve, approvals.approve_arguments),
    Command("rollouts withdraw", approvals.withdraw, rollouts.which_argument),
    Command("rollouts reject", approvals.reject, approvals.reject_arguments),
    Command("rollouts promote", rollouts.promote, rollouts.comment_arguments),
    Command("rollouts abort", rollouts.abort, rollouts.comment_arguments),
    Command("rollouts retry", rollouts.retry, rollouts.comment_arguments),
    Command("rollouts comparison", comparison.comparison, rollouts.which_argument),
    Command("rollouts undo", rollouts.undo, rollouts.undo_arguments),
    Command("keys create", keys.create, keys.create_arguments),
    Command("keys list", keys.list_keys),
    Command("keys show", keys.show_key, keys.key_argument),
    Command("keys rotate", keys.rotate, keys.rotate_arguments),
    Command("keys revoke", keys.revoke, keys.key_argument),
    Command("usage", usage.usage, usage.usage_arguments),
    Command("tokens create", tokens.create, tokens.create_arguments),
    Command("tokens list", tokens.list_tokens),
    Command("tokens show", tokens.show_token, tokens.token_argument),
    Command("tokens revoke", tokens.revoke, tokens.token_argument),
    Command("teams list", teams.list_teams),
    Command("teams show", teams.show_team, teams.team_argument),
    Command("teams create", teams.create_team, teams.team_argument),
    Command("teams delete", teams.delete_team, teams.team_argument),
    Command("teams quota", teams.quota, teams.quota_arguments),
    Command("teams budget", usage.budget, usage.budget_arguments),
    Command("teams give", teams.give, teams.owned_arguments),
    Command("teams take", teams.take, teams.owned_arguments),
    Command("teams demand", teams.show_demand, teams.demand_arguments),
    Command("teams set-demand", teams.set_demand, teams.set_demand_arguments),
    Command("members list", teams.list_members, teams.team_argument),
    Command("members add", teams.add_member, teams.add_arguments),
    Command("members remove", teams.remove_member, teams.member_arguments),
    Command("users list", users.list_users),
    Command("users show", users.show_user, users.user_argument),
    Command("users switch-off", users.switch_off, users.switch_arguments),
    Command("users switch-on", users.switch_on, users.switch_arguments),
    Command("users invite", users.invite, users.user_argument),
    Command("users free", users.free, users.user_argument),
    Command("audit list", audit.list_entries, audit.list_arguments),
    Command("webhooks list", webhooks.list_webhooks),
    Command("webhooks show", webhooks.show_webhook, webhooks.webhook_argument),
    Command("webhooks create", webhooks.create, webhooks.create_arguments),
    Command("webhooks edit", webhooks.edit, webhooks.edit_arguments),
    Command("webhooks delete", webhooks.delete, webhooks.webhook_argument),
    Command("webhooks renew-secret", webhooks.renew_secret, webhooks.webhook_argument),
    Command("webhooks test", webhooks.test, webhooks.test_arguments),
    Command("webhooks deliveries", webhooks.list_deliveries, webhooks.deliveries_arguments),
    Command("webhooks redeliver", webhooks.redeliver, webhooks.redeliver_arguments),
    Command("events", services.events, services.events_arguments),
    Command("completion", completion.completion, completion.completion_arguments, local=True, answers=False),
)
