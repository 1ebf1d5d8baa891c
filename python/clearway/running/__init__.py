"""Runs: in simulated time, in real time, on several machines, and with programs that send messages themselves."""
