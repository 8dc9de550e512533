"""Model sources of a pod's `prepare` step, and the cache that it shares with other pods. Pure.

claim      a folder on the claim that the control plane writes to
registry   the control plane, with the pod's own token
origin     S3, Google Cloud Storage or the web, where the version was imported from there, with the pod's own
           identity; else the registry
bucket     S3 or Google Cloud Storage, where the control plane keeps copies by digest, with the pod's own identity;
           else the registry
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from common.errors import InvalidInput
from integrations.clusters.base import DesiredRevision
from integrations.clusters.kubernetes.manifests.jobs import control_plane
from integrations.clusters.kubernetes.manifests.names import Manifest
from integrations.clusters.kubernetes.options import ModelCache, ModelSource, Options

_ARTIFACTS, _CACHE = "/mnt/artifacts", "/mnt/cache"


@dataclass(frozen=True, slots=True)
class Source:
    """Needs of the step and its pod: arguments, volumes, their mounts, and Secrets that become its environment.

    Attributes:
        calls: it calls the control plane; the pod's volume for that is not among `volumes`.
    """

    arguments: Sequence[str]
    volumes: Sequence[Manifest] = ()
    mounts: Sequence[Manifest] = ()
    env_from: Sequence[Manifest] = ()
    calls: bool = False


def source_of(revision: DesiredRevision, options: Options) -> Source:
    """Return the source of a revision's model for its pods; raises InvalidInput for an artifact no pod can reach."""
    if options.models_from is ModelSource.CLAIM:
        return _claim(revision, options)
    fetched = _fetched(revision, options)
    if options.model_cache is None:
        return fetched
    volume, mount, argument = _shared(options.model_cache)
    return replace(
        fetched,
        arguments=[*fetched.arguments, *argument],
        volumes=[*fetched.volumes, volume],
        mounts=[*fetched.mounts, mount],
    )


def artifact_of(revision: DesiredRevision, options: Options) -> str:
    """Return where a pool's fetcher finds a revision's artifact; raises InvalidInput where no pod can reach it."""
    if options.models_from is ModelSource.CLAIM:
        return _claim(revision, options).arguments[0].removeprefix("--artifact=")
    return _outside(revision, options) or _registered(revision, options)


def pool_source(options: Options) -> Source:
    """Return the needs of a pool's fetcher, whose artifacts are where `artifact_of` says."""
    if options.models_from is ModelSource.CLAIM:
        claim = {"claimName": options.artifacts_claim, "readOnly": True}
        return Source(
            [],
            [{"name": "artifacts", "persistentVolumeClaim": claim}],
            [{"name": "artifacts", "mountPath": _ARTIFACTS, "readOnly": True}],
        )
    secrets = [{"secretRef": {"name": options.origin_secret}}] if options.origin_secret else []
    if not options.control_plane_url:
        return Source([], env_from=secrets)
    authority = control_plane.authority_file(options)
    arguments = [
        f"--registry={control_plane.address(options, 'artifacts')}",
        f"--token-file={control_plane.token_file()}",
        *([f"--certificate-authority={authority}"] if authority else []),
    ]
    return Source(arguments, [], [control_plane.mount()], secrets, calls=True)


def _registered(revision: DesiredRevision, options: Options) -> str:
    return control_plane.address(options, f"artifacts/{revision.artifact_digest}")


def _claim(revision: DesiredRevision, options: Options) -> Source:
    parts = urlsplit(revision.artifact_uri)
    path = PurePosixPath(unquote(parts.path))
    root = PurePosixPath(options.artifacts_root)
    if parts.scheme != "file" or not options.artifacts_claim or root not in path.parents:
        raise InvalidInput(
            f"the artifact {revision.artifact_uri} of revision {revision.name} cannot be reached by a pod; "
            f"it must be in {root}, which is on the claim {options.artifacts_claim}"
        )
    claim = {"claimName": options.artifacts_claim, "readOnly": True}
    return Source(
        [f"--artifact={_ARTIFACTS / path.relative_to(root)}"],
        [{"name": "artifacts", "persistentVolumeClaim": claim}],
        [{"name": "artifacts", "mountPath": _ARTIFACTS, "readOnly": True}],
    )


def _fetched(revision: DesiredRevision, options: Options) -> Source:
    origin, secrets = [], []
    if there := _outside(revision, options):
        origin = [f"--origin={there}"]
        secrets = [{"secretRef": {"name": options.origin_secret}}] if options.origin_secret else []
    if origin and not options.control_plane_url:
        return Source(origin, env_from=secrets)
    arguments = [
        *origin,
        f"--registry={_registered(revision, options)}",
        f"--token-file={control_plane.token_file()}",
    ]
    authority = control_plane.authority_file(options)
    if authority:
        arguments.append(f"--certificate-authority={authority}")
    return Source(arguments, [], [control_plane.mount()], secrets, calls=True)


def _outside(revision: DesiredRevision, options: Options) -> str:
    """Return the address of the files outside of the control plane; empty where they are in the registry alone."""
    match options.models_from:
        case ModelSource.ORIGIN:
            return revision.artifact_origin
        case ModelSource.BUCKET:
            return place_in(options.bucket, revision.artifact_digest)
    return ""


def place_in(bucket: str, digest: str) -> str:
    """Return the address of the copy of an artifact, whose objects are its files."""
    return f"{bucket}/{digest.removeprefix('sha256:')}/"


def _shared(cache: ModelCache) -> tuple[Manifest, Manifest, list[str]]:
    place: Manifest = {"persistentVolumeClaim": {"claimName": cache.claim}}
    if cache.node_folder:
        place = {"hostPath": {"path": cache.node_folder, "type": "Directory"}}
    mount = {"name": "cache", "mountPath": _CACHE}
    return {"name": "cache", **place}, mount, [f"--cache={_CACHE}", f"--cache-max-bytes={cache.max_bytes}"]
