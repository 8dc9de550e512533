"""Code shared by runtime and control plane; the only folder of the runtime that the control plane imports.

Imports numpy and the standard library only.
"""
