"""The tables of a result and their columns: what a result that is read must have, and what completion shows.

Written by `python tests/python/column_docs.py` from what the engine says of its columns, as `docs/results.md` is; a
test compares them.
"""

from __future__ import annotations

FLOW_LEVEL = {
    "flows": (
        "flow", "src", "dst", "source", "destination", "bytes", "class", "transport", "start_ps", "delivered_ps",
        "completed_ps", "fct_ps", "ideal_ps", "slowdown", "status", "reason",
    ),
    "links": ("link", "from_node", "to_node", "tier", "rate_bps", "sent_bytes", "utilisation"),
    "utilisation": ("time_ps", "tier", "utilisation"),
}  # fmt: skip
"""Of the tables that have fewer columns at flow level: those that they have."""

LINKS_LEVEL = {"links": {"flows": "uint64", "mean_wait_ps": "double", "simulated": "name"}}
"""Columns of tables at the level of single links, beside those of flow level."""

LIVE = ("lateness", "refused", "attached", "machines", "clients")
"""Tables of a live run beside them; the last three only with attached hosts, on several machines, with programs that
have joined it."""

# columns: begin
TABLES: dict[str, dict[str, str]] = {
    "flows": {
        "flow": "uint32", "src": "uint32", "dst": "uint32", "source": "name", "destination": "name", "bytes": "uint64",
        "class": "name", "transport": "name", "submissions": "uint32", "delivered_over": "name", "start_ps": "uint64?",
        "delivered_ps": "uint64?", "completed_ps": "uint64?", "fct_ps": "uint64?", "ideal_ps": "uint64",
        "slowdown": "double", "sent_packets": "uint64", "resent_packets": "uint64", "status": "name", "reason": "name",
        "wait_ps": "uint64?", "queued_up_ps": "uint64?", "queued_down_ps": "uint64?", "queued_last_ps": "uint64?",
        "serialised_ps": "uint64?", "propagation_ps": "uint64?", "return_ps": "uint64?",
    },
    "links": {
        "link": "uint32", "from_node": "name", "to_node": "name", "tier": "name", "rate_bps": "uint64",
        "delay_ps": "uint64", "sent_packets": "uint64", "sent_bytes": "uint64", "utilisation": "double",
        "queued_bytes_max": "uint64", "overflow_packets": "uint64", "trimmed_packets": "uint64",
        "dead_packets": "uint64", "unroutable_packets": "uint64", "expired_packets": "uint64",
        "lossy_packets": "uint64", "corrupted_packets": "uint64", "unnoticed_packets": "uint64",
        "marked_packets": "uint64", "sent_frames": "uint64", "pauses": "uint64", "paused_ps": "uint64",
        "own_queues_max": "uint64", "waited_packets": "uint64", "waited_ps": "uint64",
    },
    "counters": {
        "transport": "name", "counter": "name", "value": "uint64",
    },
    "queues": {
        "time_ps": "uint64", "switch": "name", "used_bytes": "uint64", "longest_bytes": "uint64", "up_bytes": "uint64",
        "down_bytes": "uint64",
    },
    "utilisation": {
        "time_ps": "uint64", "tier": "name", "utilisation": "double", "data_share": "double",
    },
    "congestion": {
        "time_ps": "uint64", "link": "uint32", "from_node": "name", "to_node": "name", "cause": "name",
        "root_link": "uint32?", "role": "name", "paused": "bool", "bytes": "uint64", "innocent_bytes": "uint64",
    },
    "entities": {
        "time_ps": "uint64", "entity": "name", "delivered_bytes": "uint64", "received_bytes": "uint64",
    },
    "waits": {
        "entity": "name", "queue": "name", "packets": "uint64", "mean_ns": "double", "p50_ns": "uint64",
        "p95_ns": "uint64", "p99_ns": "uint64", "max_ns": "uint64",
    },
    "aqs": {
        "switch": "name", "entity": "name", "pipeline": "name", "part": "name", "number": "uint32", "aq": "uint32",
        "share_bps": "uint64", "passed_packets": "uint64", "passed_bytes": "uint64", "dropped_packets": "uint64",
        "dropped_bytes": "uint64", "marked_packets": "uint64",
    },
    "arrivals": {
        "time_ps": "uint64", "host": "uint32", "host_name": "name", "flow": "uint32", "bytes": "uint64",
    },
    "packets": {
        "time_ps": "uint64", "node": "name", "to_node": "name", "link": "uint32?", "came_ps": "uint64?",
        "last_ps": "uint64?", "waiting_bytes": "uint64?", "lost": "name", "flow": "uint32?", "transport": "name",
        "says": "name", "source": "name", "destination": "name", "hop": "uint32", "class": "uint32", "bytes": "uint64",
        "payload_bytes": "uint64", "offset_bytes": "uint64?", "marked": "bool", "trimmed": "bool",
    },
    "events": {
        "time_ps": "uint64", "event": "name", "node": "name", "to_node": "name", "link": "uint32?", "lost": "name",
        "flow": "uint32?", "transport": "name", "says": "name", "source": "name", "destination": "name",
    },
    "ports": {
        "link": "uint32", "from_node": "name", "to_node": "name", "time_ps": "uint64", "queue_bytes": "uint64",
        "queue_bytes_max": "uint64", "sent_bytes": "uint64", "free_ps": "uint64",
    },
    "states": {
        "time_ps": "uint64", "flow": "uint32", "host": "uint32", "host_name": "name", "state": "name",
        "value": "uint64?",
    },
    "jobs": {
        "job": "name", "iteration": "uint32", "ranks": "uint32", "begin_ps": "uint64?", "end_ps": "uint64?",
        "time_ps": "uint64?", "computing_ps": "uint64?", "exposed_ps": "uint64?", "critical_compute_ps": "uint64?",
        "critical_message_ps": "uint64?", "critical_local_ps": "uint64?", "critical_delay_ps": "uint64?",
        "critical_answer_ps": "uint64?", "alone_ps": "uint64?", "slowdown": "double",
    },
    "collectives": {
        "job": "name", "iteration": "uint32", "collective": "name", "kind": "name", "algorithm": "name",
        "ranks": "uint32", "bytes": "uint64", "begin_ps": "uint64?", "end_ps": "uint64?", "time_ps": "uint64?",
        "algorithm_bps": "double", "bus_bps": "double",
    },
    "ranks": {
        "job": "name", "rank": "uint32", "host": "uint32", "host_name": "name", "what": "name", "name": "name",
        "iteration": "uint32", "begin_ps": "uint64?", "end_ps": "uint64?",
    },
    "critical": {
        "job": "name", "part": "name", "rank": "uint32", "to_rank": "uint32?", "name": "name", "flow": "uint32?",
        "begin_ps": "uint64", "end_ps": "uint64",
    },
    "guarantees": {
        "link": "uint32", "from_node": "name", "to_node": "name", "tier": "name", "queue_bound_bytes": "uint64",
        "queue_max_bytes": "uint64", "share": "double",
    },
    "guaranteed_waits": {
        "quantile": "double", "wait_ps": "uint64", "wait_bound_ps": "uint64", "share": "double",
    },
    "measures": {
        "flow": "uint32", "measure": "name", "value": "uint64",
    },
}  # fmt: skip
"""By table and column: the type; "name" is text of which each value is kept once, and "?" behind it says
that rows may have no value."""
# columns: end
