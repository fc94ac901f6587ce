"""Berth decides who gets a GPU's memory on a workstation."""

__version__ = "0.1.0"
