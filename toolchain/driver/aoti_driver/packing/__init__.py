"""The layouts in which the slim runtime reads weights, and the bytes of a weight in one of them.

Imports base, contract and program.
"""
