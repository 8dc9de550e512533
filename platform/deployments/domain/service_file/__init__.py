"""Service file: KServe's InferenceService, as far as Fairlead honours it, as a value. Pure.

A field that cannot be honoured is refused by its dotted name, never ignored (docs/reference/rollouts.md lists the
fields that are honoured).
"""

from clusters.domain.patches import parse_patches, patches_json, stored_patches
from deployments.domain.service_file.access import PUBLIC, AccessPolicy, access_json, stored_access
from deployments.domain.service_file.clusters import refuse_on
from deployments.domain.service_file.companion import Companion, companion_json, stored_companion
from deployments.domain.service_file.cors import check_cors, cors_json, stored_cors
from deployments.domain.service_file.delivery import rolling_json, stored_rolling
from deployments.domain.service_file.environment import check_env, is_code, left_out, plain_secrets
from deployments.domain.service_file.file import imported_model, parse_service
from deployments.domain.service_file.limits import limits_json, stored_limits
from deployments.domain.service_file.logger import logger_json, stored_logger
from deployments.domain.service_file.model import CONFIG, EGRESS, PATCHES, STORAGE_URI, check_format
from deployments.domain.service_file.objectives import Objectives, objectives_json, stored_objectives
from deployments.domain.service_file.placement import placement_json, stored_placement
from deployments.domain.service_file.pods import pod_json, stored_pod
from deployments.domain.service_file.pools import MODEL_POOL, POOL, ModelPool, model_pool_json, stored_model_pool
from deployments.domain.service_file.predictor import CustomPredictor, custom_json, stored_custom
from deployments.domain.service_file.rewrite import file_saying, file_stopped
from deployments.domain.service_file.trained_model import as_service
from deployments.domain.service_file.values import PlacementPreference, RevisionContent, ServiceSpec, content_of
from deployments.domain.service_file.variables import secret_env_json, stored_secret_env

__all__ = [
    "CONFIG",
    "EGRESS",
    "MODEL_POOL",
    "PATCHES",
    "POOL",
    "PUBLIC",
    "STORAGE_URI",
    "AccessPolicy",
    "Companion",
    "CustomPredictor",
    "ModelPool",
    "Objectives",
    "PlacementPreference",
    "RevisionContent",
    "ServiceSpec",
    "access_json",
    "as_service",
    "check_cors",
    "check_env",
    "check_format",
    "companion_json",
    "content_of",
    "cors_json",
    "custom_json",
    "file_saying",
    "file_stopped",
    "imported_model",
    "is_code",
    "left_out",
    "limits_json",
    "logger_json",
    "model_pool_json",
    "objectives_json",
    "parse_patches",
    "parse_service",
    "patches_json",
    "placement_json",
    "plain_secrets",
    "pod_json",
    "refuse_on",
    "rolling_json",
    "secret_env_json",
    "stored_access",
    "stored_companion",
    "stored_cors",
    "stored_custom",
    "stored_limits",
    "stored_logger",
    "stored_model_pool",
    "stored_objectives",
    "stored_patches",
    "stored_placement",
    "stored_pod",
    "stored_rolling",
    "stored_secret_env",
]
