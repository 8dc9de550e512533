"""The GPUs of this machine, as NVIDIA's management library (NVML) tells them and as this process may use them."""
