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
    """A MIG slice with its position on the GPU, or a whole GPU."""

    profile = serializers.CharField()
    start = serializers.IntegerField(help_text="Index of its first memory slice.")
    size = serializers.IntegerField(help_text="Number of memory slices.")
    compute_slices = serializers.IntegerField()
    taken = serializers.BooleanField(help_text="Whether a pod uses it; exact only as a count of equal slices.")


class GpuSerializer(serializers.Serializer[Any]):
    """One GPU and its slices."""

    index = serializers.IntegerField()
    slices = SliceSerializer(many=True)


class GpuUseSerializer(serializers.Serializer[Any]):
    """Total and used number of one extended resource."""

    resource = serializers.CharField()
    total = serializers.IntegerField()
    taken = serializers.IntegerField()


class GpuPodSerializer(serializers.Serializer[Any]):
    """A pod that uses GPUs or slices."""

    name = serializers.CharField(help_text="Pod, as NAMESPACE/NAME.")
    service = serializers.CharField(help_text="Service of the replica, as NAMESPACE/NAME; empty for other pods.")
    resource = serializers.CharField()
    count = serializers.IntegerField()


class GpuNodeSerializer(serializers.Serializer[Any]):
    """A node with GPUs."""

    name = serializers.CharField()
    product = serializers.CharField()
    strategy = serializers.CharField(
        help_text="MIG strategy: none, single or mixed; of GPUs that pods claim none, static or dynamic."
    )
    memory_slices = serializers.IntegerField(help_text="Number of memory slices of one GPU.")
    gpus = GpuSerializer(many=True)
    uses = GpuUseSerializer(many=True)
    pods = GpuPodSerializer(many=True)
    note = serializers.CharField(help_text="Note about the node; empty if none.")


class ClusterGpusSerializer(serializers.Serializer[Any]):
    """The GPUs of a cluster."""

    nodes = GpuNodeSerializer(many=True)
    unknown = serializers.CharField(help_text="Reason why the nodes are unknown; empty if they are known.")


class ClusterGpusView(APIView):
    """GPUs of a cluster's nodes. For administrators, since the response names pods of all namespaces."""

    scopes = {"GET": Scope.ADMIN}

    @extend_schema(responses=ClusterGpusSerializer)
    def get(self, _request: Request, name: str) -> Response:
        """List the cluster's GPUs, their slices and the pods that use them, as read from the cluster now."""
        found = cluster_gpus(cluster=cluster_get(name=name))
        return Response(ClusterGpusSerializer(found).data)
