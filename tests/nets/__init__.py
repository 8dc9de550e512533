"""Snapshots of what must not change while modules move: names that clients, rows, files and charts have.

Each is compared with its file in `recorded/`, byte for byte; `make golden` writes them again after a wanted change.
`contracts/` has the import rules by path, as lists of today's violations that may only shrink. `python -m
tests.nets.house` prints the sizes.

| what | held by |
| --- | --- |
| OpenAPI document, without its prose | `test_openapi` |
| addresses: pattern, namespace, name | `test_urls` |
| event kinds, audit actions, purposes of sealed secrets, schemas of the runtime's JSON | `test_stored_words` |
| settings, their variables and defaults | `test_settings`; the table: `tests/control_plane/test_docs.py` |
| metrics: names, types, labels | `test_metrics`; the tables: `test_metrics.py` and `test_docs.py` of each program |
| arguments of `fairlead`, `fairlead-serve`, `manage.py` | `test_commands`; words: `docs/reference/cli.md` |
| Celery: tasks, queue, beat | `test_tasks` |
| tables, columns, indexes, constraints | `test_tables`; forward and back: `tests/control_plane/test_migrations.py` |
| strings that name our modules; entry points, loggers, templates, template tags | `test_python_paths` |
| modules, commands and variables in images, chart, overlays and documentation | `test_deployed_names` |
| the modules that a request and a rollout go through, as the architecture names them | `test_walks` |
| manifests for Kubernetes | `tests/integrations/clusters/kubernetes/golden/` |
| Envoy's configuration | `tests/integrations/clusters/local/envoy/golden/` |
| the chart as rendered | `tests/charts/golden/`; the overlays' base: `kustomize/base/fairlead.yaml` |
| paths and gRPC calls of the runtime | `serving-protocol.md` by `tests/serving_runtime/test_docs.py` |
| V2 and the other messages | `serving_runtime/proto/`, `tests/serving_runtime/test_proto.py` |
| what pages say | `tests/copy.txt` |

The agent has no metrics page; the one label that it adds to Envoy's is in the golden bootstrap. Django keeps content
types and permissions by app and model; nothing reads them.
"""
