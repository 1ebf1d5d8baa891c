"""Scenarios run by another program too: the same flows on the same fabric, and both results side by side."""
