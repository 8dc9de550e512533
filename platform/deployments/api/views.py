"""The API of policies, services and rollouts."""

from rest_framework.views import APIView


class PolicyListView(APIView):
    """All policies."""


class PolicyDetailView(APIView):
    """One policy."""


class ServiceListView(APIView):
    """All services."""


class ServiceDetailView(APIView):
    """One service."""


class RevisionListView(APIView):
    """A service's revisions."""


class EventListView(APIView):
    """A service's events."""


class RolloutListView(APIView):
    """A service's rollouts."""


class RolloutDetailView(APIView):
    """One rollout."""


class RolloutPromoteView(APIView):
    """Leave a pause."""


class RolloutAbortView(APIView):
    """Give all traffic back to stable."""


class RolloutRetryView(APIView):
    """Begin again."""
