"""GPU placement with MIG: the slice a model requires, free slices on nodes, and repartitions that add some. Pure.

geometry.py     what each GPU product can be cut into
layouts.py      which slices fit on a GPU together
needs.py        what memory a version was measured to take -> the least slice that holds it
latency.py      how long it was measured to take on which slice
rooms.py        slices of a cluster, and what is asked of them
packing.py      who gets which slice
small.py        the best packing of a few replicas
offers.py       what a cluster has for pods, and which nodes can be cut
choosing.py     which resource a service asks for, and whether there is room
inventory.py    what is known of a node, as a picture
drawing.py      the picture as boxes, with who is on which
repartition.py  which GPU to cut anew when nothing fits, and what has to leave it first
"""
