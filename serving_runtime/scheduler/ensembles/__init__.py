"""Ensemble scheduling: a request runs through the models of its steps, each as soon as its inputs exist."""
