"""The subcommand ``verify``, which is the test of every model: it compares the compiled model with
PyTorch.

Imports export, to build the module again, and the rooms below export.
"""
