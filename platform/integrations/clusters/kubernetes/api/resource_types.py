"""Resource types of a service's objects, with their API paths. Pure."""

from typing import NamedTuple


class Kind(NamedTuple):
    """A kind, as manifests and as paths name it."""

    api_version: str
    kind: str
    plural: str

    def path(self, namespace: str, name: str = "") -> str:
        """Return the path of all objects of a namespace, or of one; kinds without namespaces take ""."""
        root = f"/api/{self.api_version}" if "/" not in self.api_version else f"/apis/{self.api_version}"
        everything = f"{root}/namespaces/{namespace}/{self.plural}" if namespace else f"{root}/{self.plural}"
        return f"{everything}/{name}" if name else everything


def proxied(namespace: str, pod: str, port: int, path: str) -> str:
    """Return the API server's proxy path to a path of a pod."""
    return f"{POD.path(namespace, pod)}:{port}/proxy{path}"


def metrics_path(namespace: str, pod: str, port: int) -> str:
    """Return the API server's proxy path to a pod's metrics page."""
    return proxied(namespace, pod, port, "/metrics")


GATEWAY_API = "gateway.networking.k8s.io/v1"
CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps")
SERVICE_ACCOUNT = Kind("v1", "ServiceAccount", "serviceaccounts")
SERVICE = Kind("v1", "Service", "services")
POD = Kind("v1", "Pod", "pods")
JOB = Kind("batch/v1", "Job", "jobs")
EVENT = Kind("v1", "Event", "events")
NODE = Kind("v1", "Node", "nodes")
DEPLOYMENT = Kind("apps/v1", "Deployment", "deployments")
DISRUPTION_BUDGET = Kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets")
AUTOSCALER = Kind("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers")
SCALED_OBJECT = Kind("keda.sh/v1alpha1", "ScaledObject", "scaledobjects")
CLAIM_TEMPLATE = Kind("resource.k8s.io/v1", "ResourceClaimTemplate", "resourceclaimtemplates")
CLAIM = Kind("resource.k8s.io/v1", "ResourceClaim", "resourceclaims")
RESOURCE_SLICE = Kind("resource.k8s.io/v1", "ResourceSlice", "resourceslices")
DEVICE_CLASS = Kind("resource.k8s.io/v1", "DeviceClass", "deviceclasses")
ROLE = Kind("rbac.authorization.k8s.io/v1", "Role", "roles")
ROLE_BINDING = Kind("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings")
NETWORK_POLICY = Kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies")
ENDPOINT_SLICE = Kind("discovery.k8s.io/v1", "EndpointSlice", "endpointslices")
TOKEN_REVIEW = Kind("authentication.k8s.io/v1", "TokenReview", "tokenreviews")
GATEWAY_CLASS = Kind(GATEWAY_API, "GatewayClass", "gatewayclasses")
GATEWAY = Kind(GATEWAY_API, "Gateway", "gateways")
HTTP_ROUTE = Kind(GATEWAY_API, "HTTPRoute", "httproutes")
GRPC_ROUTE = Kind(GATEWAY_API, "GRPCRoute", "grpcroutes")
REFERENCE_GRANT = Kind("gateway.networking.k8s.io/v1beta1", "ReferenceGrant", "referencegrants")

ROUTES = (HTTP_ROUTE, GRPC_ROUTE)

_ENVOY_GATEWAY = "gateway.envoyproxy.io/v1alpha1"
SECURITY_POLICY = Kind(_ENVOY_GATEWAY, "SecurityPolicy", "securitypolicies")
TRAFFIC_POLICY = Kind(_ENVOY_GATEWAY, "BackendTrafficPolicy", "backendtrafficpolicies")

_OWN = "fairlead.dev/v1alpha1"
INFERENCE_SERVICE = Kind(_OWN, "InferenceService", "inferenceservices")
ROLLOUT_POLICY = Kind(_OWN, "RolloutPolicy", "rolloutpolicies")
ROLLOUT = Kind(_OWN, "Rollout", "rollouts")
MODEL_VERSION = Kind(_OWN, "ModelVersion", "modelversions")

KSERVE_SERVICE = Kind("serving.kserve.io/v1beta1", "InferenceService", "inferenceservices")

CUSTOM = (MODEL_VERSION, ROLLOUT_POLICY, INFERENCE_SERVICE, ROLLOUT)
"""Custom resources of Fairlead's own, in the order in which one needs the other."""

OF_USERS = (*CUSTOM, KSERVE_SERVICE)
"""Kinds whose objects users make, so that they have none of the driver's labels."""

POLICIES = (SECURITY_POLICY, TRAFFIC_POLICY)
"""Envoy Gateway's, of services that not everybody may call."""

AUTOSCALERS = (AUTOSCALER, SCALED_OBJECT)
"""Autoscalers, which replace the reconciler's scaling; the second one only with KEDA."""

OF_POOLS = (ROLE_BINDING, ROLE)
"""By which a pool's replicas read its catalog; other services have none."""

PRUNED = (*ROUTES, AUTOSCALER, DEPLOYMENT, SERVICE, DISRUPTION_BUDGET, NETWORK_POLICY, SERVICE_ACCOUNT)
"""Kinds that are pruned once no longer desired, in this order: routes before their backends."""

_BY_NAME = {
    (kind.api_version, kind.kind): kind
    for kind in (
        CONFIG_MAP,
        SERVICE_ACCOUNT,
        SERVICE,
        POD,
        JOB,
        DEPLOYMENT,
        DISRUPTION_BUDGET,
        *AUTOSCALERS,
        CLAIM_TEMPLATE,
        ROLE,
        ROLE_BINDING,
        NETWORK_POLICY,
        ENDPOINT_SLICE,
        TOKEN_REVIEW,
        GATEWAY,
        *ROUTES,
        REFERENCE_GRANT,
        *POLICIES,
        *OF_USERS,
        EVENT,
    )
}


def kind_of(manifest: "dict[str, object]") -> Kind:
    """Return the kind of a manifest that the driver rendered."""
    return _BY_NAME[str(manifest["apiVersion"]), str(manifest["kind"])]
