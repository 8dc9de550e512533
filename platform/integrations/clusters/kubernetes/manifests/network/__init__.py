"""NetworkPolicy manifests of models' pods and Jobs. Pure."""
