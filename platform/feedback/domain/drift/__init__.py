"""Drift of inputs and answers in pure functions: features, sketches, references and detectors."""
