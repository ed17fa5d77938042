"""Tools of every step: errors, files, the environment, quiet, and changes of attributes.

They do not depend on models and import no other room.
"""
