"""Sandbox of processes that open untrusted models: what such a process may read, write, call and reach.

`Sandbox` is the policy, `launch.py` applies it and becomes the program, `ability` reports how much of it this machine
supports.
"""
