"""Drivers, each read in a process of its own."""
