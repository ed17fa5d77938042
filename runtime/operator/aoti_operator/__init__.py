"""Compiled models as operators of PyTorch; the modules of `torch_operator` targets import it."""
