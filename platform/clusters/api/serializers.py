"""Serializers of clusters and of check findings."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from clusters.models import Cluster
from clusters.services.credential_expiry import Expiry, expiries
from integrations.clusters.base import Finding
from integrations.machine.limits import Level


class ComponentSerializer(serializers.Serializer[Any]):
    """Last observed state of a cluster component that is not a model, such as the gateway."""

    name = serializers.CharField()
    ready = serializers.BooleanField()
    restarts = serializers.IntegerField()
    message = serializers.CharField()


class LimitSerializer(serializers.Serializer[Any]):
    """Last observed usage of a machine limit, for a cluster that is one machine."""

    name = serializers.CharField(
        help_text="Limit: `open files`, `processes`, `inotify instances`, `inotify watches` or `memory`."
    )
    whose = serializers.CharField(help_text="Process, user or cgroup that is closest to the limit.")
    used = serializers.IntegerField(
        allow_null=True, help_text="Current usage, in bytes for memory, else a count; null if it cannot be read."
    )
    most = serializers.IntegerField(allow_null=True, help_text="Limit, in the same unit; null if it cannot be read.")
    level = serializers.ChoiceField(choices=[level.value for level in Level])
    message = serializers.CharField(help_text="Impact and remedy; empty if usage is normal or unknown.")


class ClusterWatchSerializer(serializers.Serializer[Any]):
    """State of a Kubernetes cluster's watches. While a watch is down, the worker's sweep finds changes."""

    streaming = serializers.IntegerField(help_text="Number of watches that stream now.")
    total = serializers.IntegerField()
    problems = serializers.ListField(child=serializers.CharField())
    seen_at = serializers.DateTimeField(help_text="Time of the watcher's last report.")


class ClusterSerializer(serializers.Serializer[Cluster]):
    """A cluster that runs services."""

    name = serializers.CharField()
    kind = serializers.CharField()
    components = serializers.SerializerMethodField()
    limits = LimitSerializer(many=True, help_text="Limits of the machine; empty for a cluster of several machines.")
    watch = serializers.SerializerMethodField()
    checked_at = serializers.DateTimeField(allow_null=True, help_text="Time of the worker's last check.")
    problem = serializers.CharField(help_text="Error of the last check; empty if it succeeded.")
    silent_since = serializers.DateTimeField(
        allow_null=True, help_text="Start of the outage; null while the cluster responds."
    )
    look_at = serializers.DateTimeField(
        allow_null=True, help_text="Time of the next attempt; null while the cluster responds."
    )
    created_at = serializers.DateTimeField()

    @extend_schema_field(ClusterWatchSerializer(allow_null=True))
    def get_watch(self, cluster: Cluster) -> Any:
        """Return the state of the watches; null without a watcher."""
        return cluster.watch or None

    @extend_schema_field(ComponentSerializer(many=True))
    def get_components(self, cluster: Cluster) -> Any:
        """Return the components by name."""
        return [{"name": name, **seen} for name, seen in sorted(cluster.components.items())]


class CredentialSerializer(serializers.Serializer[Expiry]):
    """End of a credential by which the cluster, its Prometheus or its gateway is reached."""

    kind = serializers.CharField(
        help_text="`client_certificate`, `token`, `authority` (stored), `mounted_certificate`, `mounted_token`, "
        "`mounted_authority`, `exec_token` (renewed by a program), `prometheus_token` or `gateway_certificate`."
    )
    issued_at = serializers.DateTimeField(allow_null=True, help_text="Of a renewed one; null where it is not known.")
    expires_at = serializers.DateTimeField(source="at")
    is_renewed = serializers.BooleanField(help_text="Whether a program renews it.")


class ClusterDetailSerializer(ClusterSerializer):
    """A cluster with its file and its services."""

    gateway_url = serializers.CharField(help_text="URL of the cluster's gateway for clients; empty for this machine.")
    file = serializers.JSONField(
        source="document",
        allow_null=True,
        help_text="Cluster file as applied, with `stored` in place of a kubeconfig; null for this machine.",
    )
    credentials = serializers.SerializerMethodField()
    services = serializers.SerializerMethodField()

    @extend_schema_field(CredentialSerializer(many=True))
    def get_credentials(self, cluster: Cluster) -> Any:
        """Return when the cluster's credentials end; those without an end are left out."""
        return [CredentialSerializer(each).data for each in expiries(cluster)]

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_services(self, cluster: Cluster) -> Any:
        """Return the cluster's services as NAMESPACE/NAME."""
        return [str(service) for service in cluster.services.order_by("namespace", "name").only("namespace", "name")]


class FindingSerializer(serializers.Serializer[Finding]):
    """Result of checking one requirement of services."""

    about = serializers.CharField()
    ok = serializers.BooleanField()
    message = serializers.CharField()
    remedy = serializers.CharField(
        help_text="Remedy; empty if nothing is to be done. Where `ok` is true there is time left."
    )


class ClusterCheckSerializer(serializers.Serializer[Any]):
    """Result of a cluster check."""

    name = serializers.CharField()
    ok = serializers.BooleanField(help_text="Whether all findings are ok.")
    findings = FindingSerializer(many=True)
