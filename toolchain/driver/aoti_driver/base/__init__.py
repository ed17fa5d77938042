"""Tools of every step: errors, files, the environment, and quiet.

They do not depend on models and import no other room.
"""
