"""What the runtime and the control plane both need; the one folder of the runtime that the control plane imports.

Imports numpy and the standard library only.
"""
