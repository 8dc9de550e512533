"""Relay: carries connections of a process without a network, each to one fixed host.

`program.py` is a process outside of the other's sandbox; `start` says how it is started and what it may reach itself.
"""
