"""`/api/v1/clusters/NAME/gpus`: GPUs and MIG slices of a cluster's nodes."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.domain.scopes import Scope
from clusters.selectors import cluster_get
from gpus.services.inventory import cluster_gpus


class SliceSerializer(serializers.Serializer[Any]):
    """A slice in its place on a GPU, or a whole GPU."""

    profile = serializers.CharField()
    start = serializers.IntegerField(help_text="Its first memory slice.")
    size = serializers.IntegerField(help_text="How many memory slices it has.")
    compute_slices = serializers.IntegerField()
    taken = serializers.BooleanField(help_text="So many of those that are alike have a pod; which ones is not known.")


class GpuSerializer(serializers.Serializer[Any]):
    """One GPU as it is cut."""

    index = serializers.IntegerField()
    slices = SliceSerializer(many=True)


class GpuUseSerializer(serializers.Serializer[Any]):
    """How many of an extended resource there are, and how many of them pods have."""

    resource = serializers.CharField()
    total = serializers.IntegerField()
    taken = serializers.IntegerField()


class GpuPodSerializer(serializers.Serializer[Any]):
    """A pod that has GPUs or slices of them."""

    name = serializers.CharField(help_text="NAMESPACE/NAME.")
    service = serializers.CharField(help_text="NAMESPACE/NAME of the service that it is a replica of; else empty.")
    resource = serializers.CharField()
    count = serializers.IntegerField()


class GpuNodeSerializer(serializers.Serializer[Any]):
    """A node with GPUs."""

    name = serializers.CharField()
    product = serializers.CharField()
    strategy = serializers.CharField(help_text="none, single or mixed: how the device plugin offers MIG slices.")
    memory_slices = serializers.IntegerField(help_text="Of one GPU.")
    gpus = GpuSerializer(many=True)
    uses = GpuUseSerializer(many=True)
    pods = GpuPodSerializer(many=True)
    note = serializers.CharField(help_text="What to know of it; empty where there is nothing.")


class ClusterGpusSerializer(serializers.Serializer[Any]):
    """The GPUs of a cluster."""

    nodes = GpuNodeSerializer(many=True)
    unknown = serializers.CharField(help_text="Why nothing is known of nodes; empty where it is.")


class ClusterGpusView(APIView):
    """GPUs of a cluster's nodes; the administrators' business, since pods of all namespaces are named."""

    scopes = {"GET": Scope.ADMIN}

    @extend_schema(responses=ClusterGpusSerializer)
    def get(self, _request: Request, name: str) -> Response:
        """Ask the cluster now which GPUs it has, how they are cut, and which pods have them."""
        found = cluster_gpus(cluster=cluster_get(name=name))
        return Response(ClusterGpusSerializer(found).data)
