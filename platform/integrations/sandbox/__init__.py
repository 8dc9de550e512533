"""The wall around processes that open somebody's model: what such a process may read, write, call and reach.

`Sandbox` says what is allowed, `launch.py` builds the wall and becomes the program, `ability` says how much of it this
machine can give.
"""
