"""Cluster files and kubeconfigs, from the smallest to one with every field."""

import base64
from typing import Any

import yaml


def pem(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


LEAST: dict[str, Any] = {
    "name": "production",
    "kind": "kubernetes",
    "connection": {"inCluster": True},
    "gateway": {"url": "https://models.example.com/", "name": "models", "namespace": "gateways"},
    "runtimeImage": "registry.example.com/serving-runtime@sha256:0",
    "artifacts": {"claim": "models", "root": "/var/lib/fairlead/artifacts"},
}


MOST: dict[str, Any] = {
    **LEAST,
    "gateway": {
        **LEAST["gateway"],
        "httpListener": "http",
        "grpcListener": "grpc",
        "rateLimits": True,
        "proxyNamespace": "envoy-gateway-system",
        "leaving": ["vision"],
    },
    "artifacts": {
        **LEAST["artifacts"],
        "from": "origin",
        "cache": {"claim": "model-cache", "size": "50Gi"},
        "originSecret": "bucket-credentials",
        "serviceAccountAnnotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/models"},
    },
    "allowPythonModels": True,
    "customResources": True,
    "kserveObjects": True,
    "gpuNodesAutoscaled": True,
    "gpuAllocation": "claims",
    "queueNames": ["models", "urgent"],
    "gpuRuntimeImage": "registry.example.com/serving-runtime-cuda@sha256:0",
    "domain": "models.example.com",
    "addresses": "hosts",
    "gateways": [
        {
            "url": "https://vision.example.com",
            "name": "vision",
            "namespace": "gateways",
            "namespaces": ["vision", "ml-*"],
            "leaving": ["speech"],
            "rateLimits": True,
        }
    ],
    "waker": {"name": "fairlead-waker", "namespace": "fairlead", "port": 9003},
    "monitoringNamespaces": ["monitoring"],
    "reach": "apiServer",
    "apiServerNetworks": ["10.0.0.0/24", "fd00::/64"],
    "defaults": {"resources": {"requests": {"cpu": "250m", "memory": "2Gi"}}},
    "sharedMemory": "128Mi",
    "customMetrics": True,
    "repartition": {"namespace": "nvidia", "configDelay": "30s"},
    "telemetry": {"otlp": "http://collector.monitoring:4318", "logs": "json"},
    "controlPlaneUrl": "https://fairlead.example.com",
    "controlPlaneCaConfigMap": "fairlead-ca",
    "drain": "1m",
    "preStop": "10s",
    "longestStart": "20m",
    "jobs": {
        "namespace": "models",
        "nodeSelector": {"gpu": "a30"},
        "tolerations": [{"key": "gpu"}],
        "measureOn": ["nvidia.com/gpu"],
    },
    "network": {
        "egress": [{"namespace": "fairlead", "pods": {"app.kubernetes.io/component": "web"}, "ports": [8080]}],
        "granted": [{"to": "internet", "ports": [443]}],
        "dns": [{"to": "169.254.20.10/32"}],
    },
    "allowedManagers": ["kube-controller-manager"],
    "patches": [{"target": {"kind": "Service"}, "merge": {"metadata": {"annotations": {"team": "vision"}}}}],
    "servicePatches": True,
    "pods": {
        "priorityClassNames": ["serving"],
        "imagePullSecrets": ["registry"],
        "nodeSelector": {"pool": ["models"]},
        "tolerationKeys": ["dedicated"],
        "labelPrefixes": ["example.com"],
    },
    "prometheus": {
        "url": "https://prometheus.example.com/eu",
        "tenant": "eu",
        "token": "secret-of-prometheus",
        "certificateAuthority": "PEM",
    },
}


NOBODY = "https://127.0.0.1:9"


KUBECONFIG = yaml.safe_dump(
    {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "one",
        "clusters": [{"name": "one", "cluster": {"server": NOBODY}}],
        "users": [{"name": "robot", "user": {"token": "secret-of-robot"}}],
        "contexts": [{"name": "one", "context": {"cluster": "one", "user": "robot"}}],
    }
)


OF_CLUSTER = {"target": {"kind": "Deployment"}, "merge": {"metadata": {"annotations": {"a": "1"}}}}


CLUSTER: dict[str, Any] = {
    "kind": "kubernetes",
    "connection": {"inCluster": True},
    "gateway": {"name": "gateway", "namespace": "gateways", "url": "https://models.example.com"},
    "runtimeImage": "fairlead/serving-runtime:test",
    "artifacts": {"claim": "models", "root": "/artifacts"},
    "patches": [OF_CLUSTER],
}
