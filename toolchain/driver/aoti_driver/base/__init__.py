"""Tools of every step: errors, files, the environment, quiet, and changes of attributes.

They know nothing of models and import no other room.
"""
