"""What the driver changes in PyTorch while a step runs, and what it uses of PyTorch's internals.

Both are lists: changes.py, of what is replaced, and uses.py. An upgrade of torch goes through them.
"""
