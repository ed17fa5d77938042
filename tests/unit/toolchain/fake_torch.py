"""Stands for torch."""
