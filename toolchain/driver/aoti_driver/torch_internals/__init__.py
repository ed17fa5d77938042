"""What the driver changes in PyTorch while a step runs: changes.py lists what is replaced.

An upgrade of torch goes through this list, and that of what the driver uses of PyTorch's internals,
docs/torch_internals_uses.py.
"""
