"""Scenarios: read and changed, what they may hold, and what a run of one will take."""
