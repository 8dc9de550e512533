"""Model pools of this machine: their fetchers, their catalogs, and revisions that a pool's replicas answer for."""
