"""GPU placement with MIG: the slice a model requires, free slices on nodes, and repartitions that add some. Pure.

mig/geometry                what each GPU product can be cut into
mig/layouts                 which slices fit on a GPU together
mig/diagram                 a node's GPUs as boxes, with their pods
slices/required_slice       the memory that a version was measured to take -> the least slice that holds it
slices/slice_types          slices of a cluster, and requests for them
slices/offers               what a cluster has for pods, and which nodes can be cut
packing/packing             which replica gets which slice
packing/exact_packing       the best packing of a few replicas
packing/measured_latency    the measured latency on each kind of slice
packing/assignment          which resource a service requests, and whether there is room
repartition/proposal        which GPU to cut again when nothing fits, and what has to leave it first
repartition/machine         a repartition on its way
inventory                   what is known of a node
"""
