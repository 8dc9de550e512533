"""Kubernetes cluster driver: a revision is a Deployment, routes are the Gateway API's."""
