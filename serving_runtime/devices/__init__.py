"""GPU discovery: the GPUs of this machine, from NVIDIA's management library (NVML), that this process may use."""
