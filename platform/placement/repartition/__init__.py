"""MIG repartitions: proposals, and the state machine that carries them out. Pure."""
