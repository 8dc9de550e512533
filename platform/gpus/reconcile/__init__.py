"""Repartition on its way: observe the node, advance, record, apply."""
