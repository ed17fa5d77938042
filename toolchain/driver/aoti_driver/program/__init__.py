"""The exported program as data: graph, tensors, weights file, and archives for stock torch.

Imports base and contract. The steps pass programs to each other only through these files.
"""
