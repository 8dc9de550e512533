"""Specs of objects which together have every field that a service file and a policy file may have."""

from typing import Any

_ENV = [
    {"name": "LEVEL", "value": "1"},
    {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "secrets", "key": "token"}}},
]
_RULES = {
    "stabilizationWindowSeconds": 30,
    "selectPolicy": "Max",
    "tolerance": 0.1,
    "policies": [{"type": "Pods", "value": 2, "periodSeconds": 30}],
}
_REQUESTS = {"cpu": "500m", "memory": "1Gi"}
SERVICES: tuple[dict[str, Any], ...] = (
    {
        "predictor": {
            "minReplicas": 2,
            "maxReplicas": 4,
            "scaleMetric": "concurrency",
            "scaleTarget": 4.5,
            "containerConcurrency": 8,
            "timeout": 60,
            "autoScaling": {"behavior": {"scaleUp": _RULES, "scaleDown": _RULES}},
            "deploymentStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}},
            "batcher": {"maxBatchSize": 16, "maxLatency": 5, "timeout": 10},
            "logger": {"url": "http://logger.example", "mode": "all"},
            "labels": {"team": "vision"},
            "serviceAccountName": "models",
            "nodeSelector": {"pool": "models"},
            "priorityClassName": "serving",
            "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}],
            "imagePullSecrets": [{"name": "registry"}],
            "topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
            ],
            "model": {
                "modelFormat": {"name": "onnx"},
                "storageUri": "models:/digits/1",
                "egress": False,
                "config": {"instance_group": [{"count": 2}]},
                "resources": {"requests": _REQUESTS, "limits": {"cpu": 2, "nvidia.com/gpu": "auto"}},
                "env": _ENV,
            },
        },
        "transformer": {
            "minReplicas": 1,
            "maxReplicas": 2,
            "scaleMetric": "cpu",
            "scaleTarget": 70.5,
            "containers": [
                {
                    "name": "transformer",
                    "image": "registry.example/transformer:1",
                    "command": ["/run"],
                    "args": ["--fast"],
                    "env": _ENV,
                    "resources": {"requests": _REQUESTS},
                    "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
                }
            ],
        },
        "explainer": {
            "minReplicas": 1,
            "maxReplicas": 2,
            "scaleMetric": "memory",
            "scaleTarget": 80,
            "containers": [
                {
                    "name": "explainer",
                    "image": "registry.example/explainer:1",
                    "command": ["/run"],
                    "args": ["--samples=100"],
                    "env": _ENV,
                    "resources": {"requests": _REQUESTS},
                    "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
                }
            ],
        },
        "rollout": {"policy": "careful"},
        "drift": "keep",
        "revisionHistoryLimit": 5,
        "patches": [
            {"target": {"kind": "Deployment", "name": "digits"}, "merge": {"metadata": {"annotations": {"a": "b"}}}},
            {"target": {"kind": "Service"}, "json6902": [{"op": "add", "path": "/metadata/labels/a", "value": "b"}]},
            {"target": {"kind": "Service"}, "json6902": [{"op": "copy", "path": "/metadata/a", "from": "/metadata/b"}]},
        ],
        "placement": {"latency": {"p99Ms": 20.5, "batchSize": 8}},
        "access": {"teams": ["vision"]},
        "cors": {"origins": ["https://app.example.com"], "maxAge": "1h"},
        "limits": {
            "requestsPerSecond": 100,
            "rowsPerMinute": 1000,
            "requestBytes": 1048576,
            "perCaller": {"requestsPerSecond": 10, "rowsPerMinute": 100, "concurrentRequests": 4},
        },
        "objectives": {"availability": 99.9, "latency": {"percent": 99, "withinMs": 100}},
    },
    {
        "predictor": {
            "egress": False,
            "protocolVersion": "v1",
            "containers": [
                {
                    "name": "kserve-container",
                    "image": f"registry.example/predictor@sha256:{1:064}",
                    "command": ["/run"],
                    "args": ["--fast"],
                    "env": _ENV,
                    "resources": {"requests": _REQUESTS, "limits": {"cpu": 2, "nvidia.com/gpu": 1}},
                    "ports": [{"name": "http1", "containerPort": 9000, "protocol": "TCP"}],
                    "readinessProbe": {"httpGet": {"path": "/healthz", "port": 9000}},
                }
            ],
        },
    },
    {
        "predictor": {
            "minReplicas": 2,
            "modelPool": {
                "memoryBudget": "512Mi",
                "sharedWith": ["vision", "*"],
                "resources": {"requests": _REQUESTS, "limits": {"cpu": 2}},
            },
        },
    },
    {
        "predictor": {"pool": "warm", "model": {"modelFormat": {"name": "onnx"}, "storageUri": "models:/digits/1"}},
    },
    {
        "predictor": {"model": {"modelFormat": {"name": "onnx"}, "storageUri": "models:/digits/1"}},
        "placement": {"replicas": "spread"},
        "access": "public",
    },
)
_ANALYSIS: dict[str, Any] = {
    "minRequests": 100,
    "maxErrorPercent": 1.5,
    "maxErrorIncreasePercent": None,
    "latencyQuantile": 0.95,
    "maxSlowPercent": 15,
    "minThroughputPercent": 80,
    "detect": {"errorPercent": 10, "slowPercent": 40, "qualityWorse": 5},
    "quality": {"scorer": "accuracy", "maxWorse": 2, "minLabels": 300, "slices": "region"},
    "maxSlowerThan": {"ms": 50, "percent": 1},
    "metrics": [
        {
            "name": "queue",
            "query": 'queue{revision="{{revision}}"}',
            "series": "service",
            "interval": "10s",
            "minLooks": 3,
            "allowedPercent": 10,
            "min": 0,
            "max": 100,
        },
        {"name": "more", "query": 'queue{revision="{{revision}}"}', "maxIncreasePercent": 10},
    ],
}
COMPARISON = {
    "minPairs": 100,
    "minAgreementPercent": 99.5,
    "topK": 1,
    "sample": 50,
    "tolerances": {"scores": {"abs": 0.01, "rel": 0.1, "topK": 3, "cosine": 0.9}, "ids": None},
}
POLICIES: tuple[dict[str, Any], ...] = (
    {
        "strategy": "canary",
        "alpha": 0.01,
        "onInconclusive": "pause",
        "scaleDownDelay": "30s",
        "progressDeadline": "2m",
        "deadline": "2h",
        "onDeadline": "abort",
        "surge": True,
        "approval": {"approvals": 2, "fourEyes": True, "expires": "24h"},
        "sessionAffinity": {"cookie": {"name": "session", "ttl": "1h"}},
        "analysis": _ANALYSIS,
        "steps": [
            {"mirror": 20, "hold": "10s", "analysis": {**_ANALYSIS, "deadline": "5m", "comparison": COMPARISON}},
            {"match": [{"header": "x-group", "exact": "beta"}, {"header": "x-region", "prefix": "eu-"}], "pause": True},
            {"weight": 10, "match": [{"header": "x-group", "anyOf": ["beta", "staff"]}], "analysis": None},
            {
                "weight": 50,
                "pause": {"approvals": 1},
                "webhooks": [
                    {
                        "name": "tests",
                        "url": "https://ci.example/hook",
                        "when": "after",
                        "timeout": "10s",
                        "deadline": "1h",
                    }
                ],
            },
        ],
    },
    {"steps": [{"weight": 50}], "sessionAffinity": {"header": "x-session"}},
    {"strategy": "shadow", "then": "pause", "steps": [{"weight": 20}]},
    {"strategy": "blueGreen", "steps": [{"hold": "1m"}]},
)
