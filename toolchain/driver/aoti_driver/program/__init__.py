"""The exported program as data: graph, tensors, weights file, and the archives that torch reads.

Imports base and contract. The steps above pass programs to each other through these files only.
"""
