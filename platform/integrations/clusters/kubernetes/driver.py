"""Kubernetes cluster driver. Called by the reconciler, which applies the whole desired state on every tick.

    apply    take the generation -> `applying`
    observe  read Deployments, pods, EndpointSlices and routes -> why pods fail -> `observation.observed`

It runs nothing between two ticks: Kubernetes runs the pods, and the gateway routes requests.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

from common.errors import Conflict, InvalidInput, NotFound, NotPermitted
from integrations.clusters.base import (
    CallerKeys,
    Candidate,
    Desired,
    DesiredNode,
    Drift,
    Exchange,
    Finding,
    Job,
    JobIdentity,
    JobResult,
    Limits,
    Made,
    NodeGpus,
    Nodes,
    Observed,
    ObservedNode,
    ObservedReplica,
    OnStage,
    Patch,
    PodTemplates,
    ReadSecrets,
    WorkloadIdentity,
)
from integrations.clusters.base.failures import MAX_LOG_LINES, last_lines
from integrations.clusters.kubernetes import rbac
from integrations.clusters.kubernetes.api import identity, resource_types
from integrations.clusters.kubernetes.api.client import Api
from integrations.clusters.kubernetes.apply import caller_keys, gpu_nodes, ownership_configmap, pool_catalog
from integrations.clusters.kubernetes.apply.apply_service import Applier, policy_kinds
from integrations.clusters.kubernetes.check_cluster import check, gateway_component, in_namespace
from integrations.clusters.kubernetes.jobs import jobs, replay
from integrations.clusters.kubernetes.manifests import deployments, render
from integrations.clusters.kubernetes.manifests.images import refuse_images
from integrations.clusters.kubernetes.manifests.names import MANAGED, METRICS_PORT, REVISION, SERVICE, pool_at
from integrations.clusters.kubernetes.manifests.owner import Entry
from integrations.clusters.kubernetes.manifests.patched import difference, refuse_idle, unpatched
from integrations.clusters.kubernetes.manifests.pools import pool_of_service
from integrations.clusters.kubernetes.manifests.template_changes import template_changes
from integrations.clusters.kubernetes.manifests.workloads import taps
from integrations.clusters.kubernetes.observe import devices, gpus, nodes
from integrations.clusters.kubernetes.observe.containers import log_container
from integrations.clusters.kubernetes.observe.failure_details import Diagnosis
from integrations.clusters.kubernetes.observe.failures import env_of
from integrations.clusters.kubernetes.observe.gateway_features import (
    ASKED,
    POLICIES,
    GatewayClass,
    asks_much,
    policy_fields,
    refuse_sleep,
    refuse_unsupported,
)
from integrations.clusters.kubernetes.observe.observation import Found, observed, observed_in_pool, replicas_of
from integrations.clusters.kubernetes.observe.pod_templates import templates_to_pin
from integrations.clusters.kubernetes.options import GatewayReference, GpuAllocation, Options, Reach
from integrations.clusters.kubernetes.payloads import Payloads
from integrations.clusters.kubernetes.unchanged import Unchanged
from integrations.clusters.local.jobs.config_check import check_config
from integrations.metrics import pages

Json = dict[str, Any]
_MOST_PODS = 10_000
_LOG_BYTES, _LOG_TIMEOUT_S = 64 << 10, 5.0


class KubernetesDriver:
    """Driver of one Kubernetes cluster; implements `ClusterDriver`. A service's namespace is one of the cluster's."""

    def __init__(self, api: Api, options: Options) -> None:
        self._api = api
        self._options = options
        self._diagnosis = Diagnosis(api)
        self._payloads = Payloads(Path(options.payloads_folder)) if options.payloads_folder else None
        self._applier = Applier(api, options)
        self._unchanged = Unchanged(api, options)
        self._revision_of_pod: dict[WorkloadIdentity, str] = {}

    def close(self) -> None:
        """Close the cached connections; a running call ends as it would have."""
        self._api.close()

    def apply(self, desired: Desired) -> list[Drift]:
        """Apply the desired state to the API server; a generation lower than the last one taken up is ignored.

        What others changed is put back or left, as `drift` says, and returned.

        Raises:
            InvalidInput: something desired is impossible on Kubernetes, by name; nothing was changed.
            Conflict: an object of that name exists that is not ours; all else was applied.
            Unavailable: others keep changing the routes.
        """
        if self._payloads is not None:
            self._payloads.switch(desired.namespace, desired.service, desired.revisions, time.time())
        return self._unchanged.applied(desired, self._apply)

    def _apply(self, desired: Desired) -> list[Drift]:
        self.check(desired)
        entry = ownership_configmap.take(self._api, desired.namespace, desired.service, desired.generation)
        return [] if entry is None else self._applier.apply(desired, entry)

    def pod_templates(self, desired: Desired) -> Mapping[str, PodTemplates]:
        """Return the pod templates of Deployments as they were applied last (`observe.pod_templates`)."""
        entry = ownership_configmap.read(self._api, desired.namespace, desired.service)
        if entry is None:
            return {}
        manifests = deployments(desired, self._options)
        for manifest in manifests:
            manifest["metadata"]["ownerReferences"] = [entry.owner]
        there = self._list(resource_types.DEPLOYMENT, desired.namespace, desired.service)
        return templates_to_pin(desired, manifests, there)

    def template_changes(self, desired: Desired) -> Mapping[str, str]:
        """Compare the pinned pod templates with those that are rendered now."""
        found = {}
        for revision in desired.revisions:
            if revision.pod_templates:
                unpinned = replace(desired, revisions=(replace(revision, pod_templates={}),))
                try:
                    made = deployments(unpinned, self._options)
                except InvalidInput as error:
                    found[revision.name] = f"a new revision would be refused now: {error.message}"
                    continue
                present = {each["metadata"]["name"]: each["spec"]["template"] for each in made}
                found[revision.name] = template_changes(revision.pod_templates, present)
        return found

    def observe(self, namespace: str, service: str) -> Observed:
        """Return the service as the API server knows it, and its weights as the gateway confirmed them."""
        return self._unchanged.observed(namespace, service, self._observe)

    def _observe(self, namespace: str, service: str) -> Observed:
        entry = ownership_configmap.read(self._api, namespace, service)
        if entry is None:
            return Observed(namespace, service)
        if entry.pool:
            return self._observe_in_pool(namespace, service, entry)
        found = Found(
            deployments=self._list(resource_types.DEPLOYMENT, namespace, service),
            pods=self._list(resource_types.POD, namespace, service),
            slices=self._list(resource_types.ENDPOINT_SLICE, namespace, service),
            routes=[route for kind in resource_types.ROUTES for route in self._list(kind, namespace, service)],
            policies=[policy for kind in policy_kinds(entry) for policy in self._list(kind, namespace, service)],
            autoscalers=self._list(resource_types.AUTOSCALER, namespace, service),
        )
        found = replace(found, failures=self._diagnosis.explain(replicas_of(found)))
        return observed(namespace, service, entry, found, self._options.of_namespace(namespace).gateway)

    def _observe_in_pool(self, namespace: str, service: str, entry: Entry) -> Observed:
        found = Found(
            routes=[route for kind in resource_types.ROUTES for route in self._list(kind, namespace, service)],
            policies=[policy for kind in policy_kinds(entry) for policy in self._list(kind, namespace, service)],
        )
        if any(each.startswith(f"{resource_types.DEPLOYMENT.kind}/") for each in entry.objects):
            found = replace(
                found,
                deployments=self._list(resource_types.DEPLOYMENT, namespace, service),
                pods=self._list(resource_types.POD, namespace, service),
                slices=self._list(resource_types.ENDPOINT_SLICE, namespace, service),
            )
            found = replace(found, failures=self._diagnosis.explain(replicas_of(found)))
        at = pool_at(entry.pool, namespace)
        pool = Found(pods=self._list(resource_types.POD, *at), slices=self._list(resource_types.ENDPOINT_SLICE, *at))
        gateway = self._options.of_namespace(namespace).gateway
        return observed_in_pool(namespace, service, entry, found, gateway, pool=pool)

    def touched(self, since: float) -> None:
        """Return None: the cluster's watches report changes at once (`watches`)."""

    def mark(self, namespace: str, service: str) -> object:
        """Return the mark of the service in the cache; None without a cache."""
        return self._unchanged.mark(namespace, service)

    def metrics_page(self, namespace: str, replica: ObservedReplica) -> str:
        """Return the page of a pod: from its address, or through the API server, as the operator chose."""
        if self._options.reach is Reach.DIRECT:
            return pages.read(replica.metrics_url)
        return self._api.page(resource_types.metrics_path(replica.namespace or namespace, replica.name, METRICS_PORT))

    def log(self, namespace: str, service: str, replica: str) -> Sequence[str]:
        """Return the last log lines of a pod's runtime, custom predictor, transformer or explainer."""
        pods = self._list(resource_types.POD, namespace, service)
        pod = next((each for each in pods if each["metadata"]["name"] == replica), None)
        if pod is None:
            raise NotFound(f"service {namespace}/{service} has no replica {replica[:100]!r} now")
        container = log_container(each["name"] for each in pod["spec"]["containers"])
        said = self._api.log(
            namespace,
            replica,
            container,
            previous=False,
            lines=MAX_LOG_LINES,
            most_bytes=_LOG_BYTES,
            timeout_s=_LOG_TIMEOUT_S,
        )
        return last_lines(said, env_of(pod))

    def exchanges(self, namespace: str, service: str, cursor: str) -> tuple[list[Exchange], str]:
        """Return the exchanges that pods sent."""
        return ([], cursor) if self._payloads is None else self._payloads.take(namespace, service, cursor)

    def keep(self, workload: WorkloadIdentity, events: bytes) -> None:
        """Keep the events that a pod sends, for `exchanges`."""
        if self._payloads is None:
            raise Conflict(f"pod {workload.pod} brings recorded requests, but the cluster has no folder for them")
        revision = self._revision_of(workload)
        self._payloads.keep(workload.namespace, workload.service, revision, workload.pod, events)

    def inventory(self, *, with_nodes: bool = False) -> Nodes:
        """Return the Gateways, ready once programmed, and each node's free capacity where that may be read."""
        components = tuple(
            gateway_component(self._options, each, self._api.get(resource_types.GATEWAY, each.namespace, each.name))
            for each in self._options.all_gateways
        )
        if not with_nodes:
            return Nodes(components)
        try:
            there, pods = self._api.list(resource_types.NODE, "", {}), self._api.list(resource_types.POD, "", {})
        except NotPermitted as error:
            return Nodes(components, unknown=f"the role fairlead-driver-nodes is not given to the driver ({error})")
        try:
            found = self._gpus(there, pods)
        except (NotFound, NotPermitted) as error:
            return Nodes(components, unknown=f"what its GPUs are cannot be read ({error}); run clusters check")
        return Nodes(
            components,
            nodes.room(there, pods),
            nodes.waiting(pods),
            found,
            self._options.defaults,
            unknown="",
            beside=taps.requested(self._options),
        )

    def _gpus(self, there: Sequence[Json], pods: Sequence[Json]) -> tuple[NodeGpus, ...]:
        """Return the nodes' GPUs; raises NotFound, NotPermitted where they are claimed and claims cannot be read."""
        if self._options.gpu_allocation is not GpuAllocation.CLAIMS:
            return gpus.gpus(there, pods)
        slices, claims = (
            self._api.list(kind, "", {}) for kind in (resource_types.RESOURCE_SLICE, resource_types.CLAIM)
        )
        return devices.gpus(there, pods, slices, claims)

    def observe_node(self, name: str) -> ObservedNode | None:
        """Return a node with GPUs as the API server knows it, and the entries of MIG manager's file."""
        return gpu_nodes.observe(self._api, self._options, name)

    def apply_node(self, desired: DesiredNode) -> Sequence[str]:
        """Write MIG manager's file, cordon or uncordon the node, evict pods, set the label; in this order."""
        return gpu_nodes.apply(self._api, self._options, desired)

    def findings(self, namespaces: Sequence[str]) -> Sequence[Finding]:
        """Return whether the API server, the Gateway and the driver's role meet the needs of services."""
        return list(check(self._api, self._options, namespaces))

    def check_namespace(self, namespace: str) -> None:
        """Raise Conflict where the namespace is missing, or the driver may not do its work there."""
        wrong = next((each for each in in_namespace(self._api, self._options, namespace) if not each.ok), None)
        if wrong is not None:
            raise Conflict(f"{wrong.message}; {wrong.remedy}", field="metadata.namespace")

    def run(self, job: Job, on_stage: OnStage | None = None, made: Made | None = None) -> JobResult:  # noqa: ARG002
        """Run the job as a Kubernetes Job in the namespace for jobs; its pod uploads its result itself."""
        return jobs.run(self._api, self._options, job, on_stage)

    def replay(self, candidate: Candidate) -> AbstractContextManager[Callable[[Exchange], Exchange]]:
        """Run the candidate as a pod in the service's namespace."""
        return replay.replay(self._api, self._options, candidate)

    def check_config(self, fields: Mapping[str, object]) -> None:
        """Check with the serving runtime that is installed beside the control plane."""
        check_config(fields)

    def identify(self, token: str) -> WorkloadIdentity | JobIdentity | None:
        """Identify a token by the API server's TokenReview."""
        found = identity.identity_of(self._api.create(identity.review(token)))
        if found is None or found.records_only or found.namespace != self._options.jobs_namespace:
            return found
        return jobs.identity_of(self._api, found) or found

    def apply_secrets(self, namespace: str, service: str, read: ReadSecrets) -> None:  # noqa: ARG002
        """Refuse: pods name the Secrets of their namespace."""
        raise Conflict(f"secrets of {namespace}/{service} are those of its namespace on the cluster")

    def apply_keys(self, keys: CallerKeys, namespaces: Collection[str]) -> None:
        """Write the keys into the policies of services in these namespaces, for the gateway to check callers by."""
        caller_keys.push(self._api, keys, namespaces)

    def preview(self, desired: Desired, patches: Sequence[Patch]) -> str:
        """Return what patches change, after a server-side dry run at the API server.

        Raises:
            InvalidInput: a patch changes nothing, touches fields that are not its own, or is rejected by the API
                server; by name.
        """
        shares = {revision.name: revision.weight_percent for revision in desired.revisions}
        options = self._options.of_namespace(desired.namespace, desired.shared_with)
        before, after = (render(each, shares, options) for each in (unpatched(desired), desired))
        refuse_idle(desired, before, patches)
        reported = []
        for one, other in zip(before, after, strict=True):
            if one != other:
                self._api.apply(other, dry_run=True, force=True)
                reported.append(difference(one, other))
        return "".join(reported)

    def delete(self, namespace: str, service: str, generation: int) -> None:
        """Delete the service, its routes first; it is known until the last of it is gone.

        A call removes the next of what is left, so that the gateway has no route without its policy and no pod is
        without its network policy; the caller repeats it until the service is gone.
        """
        closed = ownership_configmap.close(self._api, namespace, service, generation)
        if closed is None:
            return
        for kinds in self._applier.in_order_of_removal(closed):
            if self._remove(kinds, namespace, service):
                return
        if closed.pool:
            pool_catalog.remove(self._api, namespace, service, pool_at(closed.pool, namespace))
        if closed.is_pool:
            pool_catalog.remove_all(self._api, namespace, service)
        ownership_configmap.remove(self._api, namespace, service, closed)
        if self._payloads is not None:
            self._payloads.remove(namespace, service)

    def check(self, desired: Desired) -> None:
        """Raise InvalidInput, naming the field, where something desired is impossible on this cluster."""
        options = self._options.of_namespace(desired.namespace, desired.shared_with)
        refuse_sleep(desired, options)
        rendered = render(desired, {}, options)
        pinned = {name for revision in desired.revisions for name in revision.pod_templates}
        try:
            refuse_images(rendered, options, (), pinned)
        except InvalidInput:
            there = self._list(resource_types.DEPLOYMENT, desired.namespace, desired.service)
            refuse_images(rendered, options, there, pinned)
        self._check_pools(desired, options)
        if not asks_much(desired):
            return
        for gateway in (options.gateway, *options.also):
            refuse_unsupported(desired, self._gateway_class(gateway), gateway.name)
        for field in policy_fields(desired)[:1]:
            problem = self._policies_problem(desired.namespace)
            if problem:
                asked = ASKED[field].format(desired.service)
                raise InvalidInput(f"{asked}, which takes policies of Envoy Gateway: {problem}", field=field)
        if desired.limits != Limits() and not options.rate_limits:
            raise InvalidInput(
                f"{ASKED['spec.limits'].format(desired.service)}, but the cluster's gateway has no rate limit service; "
                "enable that of Envoy Gateway and set its rateLimits in the cluster file, or leave spec.limits out",
                field="spec.limits",
            )

    def _check_pools(self, desired: Desired, options: Options) -> None:
        """Raise InvalidInput where a pool, or a service in one, takes roles that the driver has not."""
        if any(each.is_pool for each in desired.revisions):
            shared = (resource_types.REFERENCE_GRANT,) if desired.shared_with else ()
            try:
                for kind in (*resource_types.OF_POOLS, *shared):
                    self._api.fetch_list(kind, desired.namespace, MANAGED)
            except NotPermitted as error:
                also = " and, as it is shared, a ReferenceGrant" if shared else ""
                remedy = f"bind the role {rbac.POOLS} in {desired.namespace} ({error.message})"
                raise InvalidInput(
                    f"{desired.service} is a pool, which has a Role{also}: {remedy}", field="pool"
                ) from error
            except NotFound as error:
                raise InvalidInput(
                    f"{desired.service} is a shared pool, which has a ReferenceGrant: install the Gateway API's CRD "
                    "for it, referencegrants.gateway.networking.k8s.io, or leave sharedWith out",
                    field="spec.predictor.modelPool.sharedWith",
                ) from error
        at, pool = pool_of_service(desired)
        if pool and at != desired.namespace:
            self._check_pool_of_others(desired, at, pool)
        if pool and POLICIES in self._gateway_class(options.gateway).features:
            problem = self._policies_problem(desired.namespace)
            if problem:
                what = (
                    f"{desired.service} is in a pool, and a policy of Envoy Gateway sends its requests to one replica"
                )
                raise InvalidInput(f"{what}: {problem}", field="pool")

    def _check_pool_of_others(self, desired: Desired, namespace: str, pool: str) -> None:
        """Raise InvalidInput where the driver cannot read a pool in another namespace than its service's."""
        try:
            ownership_configmap.read(self._api, namespace, pool)
            self._list(resource_types.ENDPOINT_SLICE, namespace, pool)
        except NotPermitted as error:
            raise InvalidInput(
                f"{desired.service} is in pool {namespace}/{pool}, whose catalog is in namespace {namespace}: bind the "
                f"role {rbac.IN_NAMESPACES} there too ({error.message})",
                field="pool",
            ) from error

    def checks_callers(self, namespace: str) -> bool:
        """Return whether the gateway can check the callers of services of the namespace; raises NotPermitted."""
        try:
            gateway = self._options.of_namespace(namespace).gateway
            return POLICIES in self._gateway_class(gateway).features and self._has_policies(namespace)
        except NotFound:
            return False

    def _gateway_class(self, reference: GatewayReference) -> GatewayClass:
        gateway = self._api.get(resource_types.GATEWAY, reference.namespace, reference.name)
        name = "" if gateway is None else gateway["spec"]["gatewayClassName"]
        found = self._api.get(resource_types.GATEWAY_CLASS, "", name) if name else None
        return GatewayClass.read(gateway, found)

    def _policies_problem(self, namespace: str) -> str:
        """Return what to do before the driver can apply policies in the namespace; empty where it can."""
        try:
            self._has_policies(namespace)
        except NotPermitted as error:
            return f"bind the role fairlead-driver-access in {namespace} ({error.message})"
        except NotFound:
            return "install Envoy Gateway's CRDs, release 1.9 or newer"
        return ""

    def _has_policies(self, namespace: str) -> bool:
        """Return True where policies can be read; raises NotPermitted, NotFound without Envoy Gateway's CRDs.

        It asks the API server in any case: to a cache, a kind that the cluster lacks is one without objects.
        """
        for kind in resource_types.POLICIES:
            self._api.fetch_list(kind, namespace, MANAGED)
        return True

    def _remove(self, kinds: Sequence[resource_types.Kind], namespace: str, service: str) -> bool:
        """Delete the service's objects of these kinds; returns whether there were any."""
        found = [(kind, each["metadata"]) for kind in kinds for each in self._list(kind, namespace, service)]
        for kind, metadata in found:
            if "deletionTimestamp" not in metadata:
                self._api.delete(kind, namespace, metadata["name"], uid=metadata["uid"], propagation="Foreground")
        return bool(found)

    def _revision_of(self, workload: WorkloadIdentity) -> str:
        """Return the revision of a pod, by its label, which only those who run pods can set; raises Conflict."""
        if workload not in self._revision_of_pod:
            pods = self._list(resource_types.POD, workload.namespace, workload.service)
            pod = next((each for each in pods if each["metadata"]["name"] == workload.pod), None)
            if pod is None or REVISION not in pod["metadata"]["labels"]:
                raise Conflict(f"pod {workload.pod} is no replica of {workload.namespace}/{workload.service}")
            if len(self._revision_of_pod) >= _MOST_PODS:
                self._revision_of_pod.clear()
            self._revision_of_pod[workload] = pod["metadata"]["labels"][REVISION]
        return self._revision_of_pod[workload]

    def _list(self, kind: resource_types.Kind, namespace: str, service: str) -> list[Json]:
        return self._api.list(kind, namespace, {SERVICE: service})
