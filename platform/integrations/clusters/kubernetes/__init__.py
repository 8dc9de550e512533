"""The cluster driver for Kubernetes: a revision is a Deployment, routes are the Gateway API's."""
