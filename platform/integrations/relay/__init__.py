"""Relay: connections of a process without a network, each to one fixed host, carried by a process outside of its sandbox.

`program.py` is that process, `start` says how it is started and what it may reach itself.
"""
