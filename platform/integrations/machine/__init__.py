"""Limits of this machine: what the platform has of them, read from /proc and cgroups, and what to do where it is close.

`limits` decides and words, `readings` reads. The local agent reads again and again; `fairlead up` does once, at start.
"""
