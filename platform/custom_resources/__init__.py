"""Custom resources: services, policies and rollouts as objects of a Kubernetes cluster, which Git may keep."""
