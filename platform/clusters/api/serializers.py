"""JSON forms of clusters and of what a check finds."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from clusters.models import Cluster
from integrations.clusters.base import Finding
from integrations.machine.limits import Level


class ComponentSerializer(serializers.Serializer[Any]):
    """A part of a cluster that is no model, such as its gateway, as it was last seen."""

    name = serializers.CharField()
    ready = serializers.BooleanField()
    restarts = serializers.IntegerField()
    message = serializers.CharField()


class LimitSerializer(serializers.Serializer[Any]):
    """A limit of the machine that a cluster is, as it was last seen."""

    name = serializers.CharField(
        help_text="`open files`, `processes`, `inotify instances`, `inotify watches` or `memory`."
    )
    whose = serializers.CharField(help_text="Which process, user or cgroup is closest to it.")
    used = serializers.IntegerField(allow_null=True, help_text="Bytes of memory; null where it cannot be read.")
    most = serializers.IntegerField(allow_null=True)
    level = serializers.ChoiceField(choices=[level.value for level in Level])
    message = serializers.CharField(help_text="What breaks and what to do; empty where it is fine or unknown.")


class ClusterWatchSerializer(serializers.Serializer[Any]):
    """How the watches of a Kubernetes cluster do; while they are away, changes are found by the worker's sweep."""

    streaming = serializers.IntegerField(help_text="How many stream now.")
    total = serializers.IntegerField()
    problems = serializers.ListField(child=serializers.CharField())
    seen_at = serializers.DateTimeField(help_text="When the watcher last said so.")


class ClusterSerializer(serializers.Serializer[Cluster]):
    """Where services run."""

    name = serializers.CharField()
    kind = serializers.CharField()
    components = serializers.SerializerMethodField()
    limits = LimitSerializer(many=True, help_text="Of the machine; empty for a cluster of several.")
    watch = serializers.SerializerMethodField()
    checked_at = serializers.DateTimeField(allow_null=True, help_text="When the worker looked last.")
    problem = serializers.CharField(help_text="Why it saw nothing then; empty where it did.")
    silent_since = serializers.DateTimeField(allow_null=True, help_text="Since when it answers nothing.")
    look_at = serializers.DateTimeField(allow_null=True, help_text="When it is asked again.")
    created_at = serializers.DateTimeField()

    @extend_schema_field(ClusterWatchSerializer(allow_null=True))
    def get_watch(self, cluster: Cluster) -> Any:
        """Return how the watches do; null where nobody keeps any."""
        return cluster.watch or None

    @extend_schema_field(ComponentSerializer(many=True))
    def get_components(self, cluster: Cluster) -> Any:
        """Return the parts by name."""
        return [{"name": name, **seen} for name, seen in sorted(cluster.components.items())]


class ClusterDetailSerializer(ClusterSerializer):
    """A cluster with its file and what runs on it."""

    gateway_url = serializers.CharField(help_text="Where clients reach its gateway; empty for this machine.")
    file = serializers.JSONField(
        source="document",
        allow_null=True,
        help_text="As it was applied, `stored` in the place of a kubeconfig; null for this machine.",
    )
    services = serializers.SerializerMethodField()

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_services(self, cluster: Cluster) -> Any:
        """Return NAMESPACE/NAME of what runs on it."""
        return [str(service) for service in cluster.services.order_by("namespace", "name").only("namespace", "name")]


class FindingSerializer(serializers.Serializer[Finding]):
    """One thing that services need of a cluster."""

    about = serializers.CharField()
    ok = serializers.BooleanField()
    message = serializers.CharField()
    remedy = serializers.CharField(help_text="What to do where it is not ok; else empty.")


class ClusterCheckSerializer(serializers.Serializer[Any]):
    """What a check found."""

    name = serializers.CharField()
    ok = serializers.BooleanField(help_text="All findings are.")
    findings = FindingSerializer(many=True)
