"""Random scenarios, run in many ways that must not differ.

`draw` draws a scenario from the schema, with the `hints` that the schema lacks; `settle` leaves out what can't stand
together; `trial` runs what is left on one thread and two, cut into parts, skipping what repeats, live, and at each
level, compares all of it, and works out anew what must `hold` of a result. That is done by a `worker`, whose CPU time
and memory are bounded. `search` looks for a scenario that fails, makes it small, and writes it down.

`make swarm SECONDS=600` does so for a while; `test_swarm.py` does it for a number of scenarios, the same ones each
time, and replays those that have failed once: `tests/swarm`.
"""
