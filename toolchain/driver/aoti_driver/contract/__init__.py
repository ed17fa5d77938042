"""The types that steps share: the manifest, and the language of BUILD files.

The rooms above read and write these types: dims and their sizes, input specs, names of tensors,
dtypes, instruction sets, conditions. Imports base.
"""
