"""Code for NVIDIA GPUs on a machine without one: the pretended device, kernels and their images."""
