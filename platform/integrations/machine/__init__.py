"""Resource limits of this machine and their use, read from /proc and cgroups, with what to do where one is close.

`limits` decides and words, `readings` reads. The local agent reads periodically; `fairlead up` once, at start.
"""
