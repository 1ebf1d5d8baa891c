"""`clearway tune`: which headroom, marks and shares of memory keep a workload lossless with the least pausing.

The switch is that of `flow_control.mmu`. A *knob* is a setting with a ladder of values that it may have. A *setting* is
a value for each knob, and is tried with several seeds, and over each scenario that was given. The search has three
steps.

1. Headroom is as large as arithmetic says that it must be. All else is compared with that.
2. Each other knob in turn: every fourth value of its ladder, then every second beside the best, then its neighbours.
   This is repeated until a round changes nothing.
3. Headroom: bisection for the least that loses nothing, since more headroom never loses more.

At the end each knob is varied alone around what was found: the curve.

- `knobs.py`: what can be tuned, and ladders
- `trials.py`: settings become runs, by the sweeps' store: an interrupted search goes on where it was
- `search.py`: the search
- `tuned.py`: what came out: sentences, table, curve, page
- `keys.py`: what to write, in a scenario and in SONiC's configuration

Absent on purpose: models of the response between runs (a switch loses its first packet at a cliff, which they smooth),
and settings of transports, which are not the switch's.
"""
