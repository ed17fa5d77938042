"""What the steps agree on: the manifest, and the words in which a BUILD file says things.

The rooms above read and write these types: dims and their sizes, input specs, names of tensors,
dtypes, instruction sets, conditions. Imports base.
"""
