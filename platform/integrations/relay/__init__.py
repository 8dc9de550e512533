"""Connection relay for a process without a network; each route leads to one fixed host.

`program.py` is a process outside of the other's sandbox; `start` has its command and what it may reach itself.
"""
