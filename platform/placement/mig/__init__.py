"""MIG geometry and layouts of GPU products. Pure."""
