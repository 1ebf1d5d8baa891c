"""Traces for Perfetto's viewer (ui.perfetto.dev), from the packets of a result: a process for each node, in it a track
for each link with the packets in service and one with the bytes that wait, a track for each flow (what it waited
for, when it sent, when it made good a loss) and for each number that its transport has of it, what was agreed on in
matchings and reservations, and what neighbours were told to hold back. Arrows follow each packet from hop to hop. A
training job is a process, too: tracks of each rank with its computations, collectives, exposed communication and parts
of the critical path, whose arrows lead from rank to rank.

The format is Perfetto's own (TrackEvent), written by its authors' package. Its times are whole nanoseconds; those of
each packet to the picosecond are among its details.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TracePacket, TrackDescriptor, TrackEvent
from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder

from clearway.files.whole import replace
from clearway.results.jobs import PARTS, critical
from clearway.results.packets import is_whole, packets, pauses, roots
from clearway.results.states import blocked, in_columns, of_host, states

if TYPE_CHECKING:
    from clearway.results.result import Result


WAITS = {
    "window": "waits: its window is full",
    "tokens": "waits for tokens",
    "credit_packets": "waits for credit",
    "granted_bytes": "waits for grants",
    "timeslots": "waits for timeslots",
    "slots": "waits for slots",
}
"""The cause of a sender's wait, by the state that is 0."""

JOB_ARROWS = 1 << 48
"""The arrows of critical paths are numbered from here on, those of packets from 0."""


def write(result: Result, path: Path) -> Path:
    """Writes the trace of a result with recorded packets: the whole file or none."""
    rows = packets(result)

    def write_to(part: Path) -> None:
        with part.open("wb") as file:
            _Trace(result, rows, file).write()

    replace(path, write_to)
    return path


class _Trace:
    def __init__(self, result: Result, rows: pd.DataFrame, file: IO[bytes]) -> None:
        self._result, self._rows = result, rows
        self._builder = StreamingTraceProtoBuilder(file)
        # Names by the numbers that stand for them in the file.
        self._names: dict[str, int] = {}
        self._keys: dict[str, int] = {}
        self._tracks = 0
        self._nodes: dict[str, int] = {}
        # Flows that are in the trace, and those whose senders' states are known.
        self._seen = set(rows["flow"].dropna().astype(int))
        self._followed: dict[int, pd.DataFrame] = {}
        if "states" in result.tables:
            known, senders = states(result), dict(zip(result.flows["flow"], result.flows["src"]))
            known = known[known["host"] == known["flow"].map(senders)]
            self._followed = {int(rows["flow"].iloc[0]): rows for _, rows in known.groupby("flow")}

    def write(self) -> None:
        rows = self._rows
        names = [str(name) for name in dict.fromkeys([*rows["node"], *rows["to_node"]]) if name]
        for name in sorted(names, key=_order):
            self._node(name)
        self._flows()
        self._states()
        self._agreed()
        sent = rows[rows["link"].notna()]
        sent = sent.assign(packet=_packet_numbers(sent))
        sent["first_marked"] = _first_marked(sent)
        whole = is_whole(self._result)
        for _, on_link in sent.groupby("link", sort=True):
            self._link(on_link, whole)
        lost = rows[rows["lost"] != ""]
        for node, at, why, name in zip(lost["node"], lost["time_ps"], lost["lost"], _names(lost)):
            self._instant(self._nodes[str(node)], at, f"lost, {why}: {name}", {"at_ps": int(at)})
        self._pauses()
        self._failures()
        self._jobs()

    def _node(self, name: str) -> int:
        """The process of a node, or of a job."""
        track = self._nodes[name] = self._new_track()
        packet = self._builder.create_packet()
        packet.track_descriptor.uuid = track
        packet.track_descriptor.process.pid = len(self._nodes)
        packet.track_descriptor.process.process_name = name
        packet.track_descriptor.child_ordering = TrackDescriptor.ChildTracksOrdering.EXPLICIT
        self._builder.write_packet(packet)
        return track

    def _track(self, parent: int, name: str, rank: int, unit: str = "") -> int:
        """A track of a node; with a unit, of numbers."""
        track = self._new_track()
        packet = self._builder.create_packet()
        packet.track_descriptor.uuid = track
        packet.track_descriptor.parent_uuid = parent
        packet.track_descriptor.name = name
        packet.track_descriptor.sibling_order_rank = rank
        if unit:
            packet.track_descriptor.counter.unit_name = unit
        self._builder.write_packet(packet)
        return track

    def _new_track(self) -> int:
        self._tracks += 1
        return self._tracks

    def _event(self, track: int, at_ps: float, kind: Any) -> Any:
        packet = self._builder.create_packet()
        packet.timestamp = int(at_ps) // 1000
        packet.trusted_packet_sequence_id = 1
        flags = TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
        packet.sequence_flags = flags if self._names else flags | TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
        packet.track_event.track_uuid = track
        packet.track_event.type = kind
        return packet

    def _say(self, packet: Any, name: str, details: Mapping[str, Any]) -> None:
        """Names an event, with details that the viewer shows beside it."""
        number = self._names.get(name)
        if number is None:
            number = self._names[name] = len(self._names) + 1
            packet.interned_data.event_names.add(iid=number, name=name)
        packet.track_event.name_iid = number
        for key, value in details.items():
            number = self._keys.get(key)
            if number is None:
                number = self._keys[key] = len(self._keys) + 1
                packet.interned_data.debug_annotation_names.add(iid=number, name=key)
            note = packet.track_event.debug_annotations.add(name_iid=number)
            if isinstance(value, str):
                note.string_value = value
            elif isinstance(value, int):
                note.int_value = value
            else:
                note.double_value = float(value)

    def _slice(
        self, track: int, begin_ps: float, end_ps: float, name: str, details: Mapping[str, Any], arrow: int = -1
    ) -> None:
        begin = self._event(track, begin_ps, TrackEvent.TYPE_SLICE_BEGIN)
        self._say(begin, name, details)
        if arrow >= 0:
            begin.track_event.flow_ids.append(arrow)
        self._builder.write_packet(begin)
        self._builder.write_packet(self._event(track, end_ps, TrackEvent.TYPE_SLICE_END))

    def _instant(self, track: int, at_ps: float, name: str, details: Mapping[str, Any]) -> None:
        event = self._event(track, at_ps, TrackEvent.TYPE_INSTANT)
        self._say(event, name, details)
        self._builder.write_packet(event)

    def _number(self, track: int, at_ps: float, value: int) -> None:
        event = self._event(track, at_ps, TrackEvent.TYPE_COUNTER)
        event.track_event.counter_value = value
        self._builder.write_packet(event)

    def _flows(self) -> None:
        """A flow's track, at its sender: from its start to its end, and in that until its first packet left."""
        seen = self._seen
        payload = self._rows[self._rows["payload_bytes"] > 0]
        sent = {int(rows["flow"].iloc[0]): rows for _, rows in payload.groupby("flow")}
        flows = self._result.flows.to_pandas()
        for flow in _dicts(flows[flows["flow"].isin(seen)]):
            number, parent = flow["flow"], self._nodes.get(f"host{flow['src']}")
            if parent is None or pd.isna(flow["start_ps"]):
                continue
            end = flow["completed_ps"] if not pd.isna(flow["completed_ps"]) else self._result.info["end_ps"]
            track = self._track(parent, f"flow {number} to host{flow['dst']}", 1 << 20 | min(number, 1 << 20))
            begin = self._event(track, flow["start_ps"], TrackEvent.TYPE_SLICE_BEGIN)
            name = f"flow {number}: {flow['bytes']:,} B to host{flow['dst']}, {flow['transport']}"
            self._say(begin, name, {key: flow[key] for key in ("class", "status")})
            self._builder.write_packet(begin)
            if number in sent:
                for from_, until, what in self._phases(flow, sent[number], end):
                    self._slice(track, from_, until, what, {})
            self._builder.write_packet(self._event(track, end, TrackEvent.TYPE_SLICE_END))

    def _phases(self, flow: dict[str, Any], rows: pd.DataFrame, end: float) -> list[tuple[float, float, str]]:
        """The activity of a flow's sender from its start to `end`, by the rows of its packets; while it sent nothing,
        the cause of its wait, if its states were recorded.
        """
        first, last = float(rows["time_ps"].min()), float(rows["last_ps"].max())
        start, number = float(flow["start_ps"]), flow["flow"]
        at, words = np.array([start]), np.array([""], dtype=object)
        if number in self._followed:
            mine = of_host(in_columns(self._followed[number]), flow["src"])
            at = np.concatenate([at, mine["time_us"].to_numpy() * 1e6])
            waits = pd.Series("", index=mine.index, dtype=object)
            for what, when in blocked(mine, flow):
                waits = waits.mask(when & (waits == ""), WAITS[what.split(" ")[0]])
            words = np.concatenate([words, waits.to_numpy()])
        mends, left = _Spans(_recoveries(rows, end)), rows[rows["node"].astype(str) == rows["source"].astype(str)]
        busy = _Spans(list(zip(left["time_ps"].astype(float), left["last_ps"].astype(float))) if len(at) > 1 else [])
        points = np.unique(
            np.clip(np.concatenate([at, [start, first, last, end], mends.edges, busy.edges]), start, end)
        )
        phases: list[tuple[float, float, str]] = []
        for begin, until in zip(points[:-1].tolist(), points[1:].tolist()):
            waits_for = str(words[max(np.searchsorted(at, begin, side="right") - 1, 0)])
            if begin < first:
                what = waits_for or "waits until its first packet leaves"
            elif mends.have(begin):
                what = "recovers"
            elif begin >= last:
                what = "until it is complete"
            else:
                what = "sends" if busy.have(begin) else waits_for or "sends"
            if phases and phases[-1][2] == what:
                phases[-1] = (phases[-1][0], until, what)
            else:
                phases.append((begin, until, what))
        return phases

    def _agreed(self) -> None:
        """The messages between hosts and switches on matchings and reservations, in the words of their paper."""
        if "events" not in self._result.tables:
            return
        rows = self._result.events.to_pandas()
        rows = rows[rows["event"].isin(["matching", "reservations"])]
        rows = rows[rows["time_ps"].between(self._rows["time_ps"].min(), self._rows["time_ps"].max())]
        if not is_whole(self._result):
            flows = self._result.flows.to_pandas()
            flows = flows[flows["flow"].isin(self._seen)]
            ends = {frozenset((f"host{a}", f"host{b}")) for a, b in zip(flows["src"], flows["dst"])}
            pairs = zip(rows["source"].astype(str), rows["destination"].astype(str))
            rows = rows[np.array([frozenset(pair) in ends for pair in pairs], dtype=bool)]
        for (node, kind), said in rows.groupby(["node", "event"], sort=True, observed=True):
            if str(node) not in self._nodes:
                continue
            track = self._track(self._nodes[str(node)], str(kind), 1 << 18)
            for at, name, to in zip(said["time_ps"], said["says"].astype(str), said["destination"].astype(str)):
                self._instant(track, at, f"{name}, to {to}", {"at_ps": int(at)})

    def _states(self) -> None:
        """The hosts' state of the flows that were followed: one track per number, beside the flow's."""
        if "states" not in self._result.tables:
            return
        rows = states(self._result)
        for key, changes in rows[rows["flow"].isin(self._seen)].groupby(["host", "flow", "state"], sort=True):
            host, flow, name = int(str(key[0])), int(str(key[1])), str(key[2])
            parent = self._nodes.get(f"host{host}")
            if parent is None:
                continue
            rank = 1 << 20 | min(flow, 1 << 20)
            track = self._track(parent, f"flow {flow}: {name}", rank, name.rpartition("_")[2])
            for at, value in zip(changes["time_ps"].tolist(), changes["value"].fillna(0).tolist()):
                self._number(track, at, int(value))

    def _link(self, rows: pd.DataFrame, whole: bool) -> None:
        """A link's packets in service, and how many bytes wait for it; `whole` if all its packets are there."""
        one: Any = rows.iloc[0]
        rank = int(one["link"]) * 2
        node = self._nodes.get(one["node"])
        if node is None:
            return
        track = self._track(node, f"to {one['to_node']}", rank)
        columns = ["time_ps", "last_ps", "packet", "first_marked", "bytes", "class", "came_ps"]
        for name, at, last, arrow, marked, *said in zip(_names(rows), *(rows[column].tolist() for column in columns)):
            size, priority, came = said
            details = {"bytes": size, "class": priority, "came_ps": int(came), "left_ps": at}
            self._slice(track, at, last, name, details, arrow)
            if marked:
                self._instant(track, at, f"marked: {name}", {})
        waited = rows[rows["time_ps"] > rows["came_ps"]]
        if not len(waited):
            return
        numbers = self._track(self._nodes[one["node"]], f"waits for {one['to_node']}", rank + 1, "bytes")
        for at, value in _lengths(rows, waited, whole):
            self._number(numbers, at, value)

    def _pauses(self) -> None:
        """The packets that each node was told to hold back, on one track per neighbour that sent the frame."""
        held, named = pauses(self._result), roots(self._result)
        for (node, by, says), rows in held.groupby(["node", "by", "says"], sort=True):
            track = self._track(self._nodes[str(node)], f"held by {by}: {named(str(says))}", 1 << 19)
            for begin, end in zip(rows["from_ps"], rows["to_ps"]):
                self._slice(track, begin, end, named(str(says)), {})
        merges = self._rows[self._rows["says"].astype(str).str.startswith("Merge old ") & self._rows["link"].notna()]
        for (node, by), rows in merges.groupby(["to_node", "node"], sort=True, observed=True):
            track = self._track(self._nodes[str(node)], f"merged by {by}", 1 << 19)
            for at, says in zip(rows["last_ps"], rows["says"].astype(str)):
                self._instant(track, at, named(f"MERGE {says.removeprefix('Merge ')}"), {"at_ps": int(at)})

    def _jobs(self) -> None:
        """A process for each training job: its iterations, and what each of its ranks does."""
        if "jobs" not in self._result.tables:
            return
        jobs, ranks = self._result.jobs.to_pandas(), self._result.ranks.to_pandas()
        for number, job in enumerate(dict.fromkeys(jobs["job"].astype(str))):
            process = self._node(f"job {job}")
            track = self._track(process, "iterations", 0)
            for row in _dicts(jobs[(jobs["job"] == job) & jobs["end_ps"].notna()]):
                details = {key: int(row[key]) for key in ("computing_ps", "exposed_ps")}
                self._slice(track, row["begin_ps"], row["end_ps"], f"iteration {row['iteration']}", details)
            # A slice that never ended lasts until the run did.
            mine = ranks[(ranks["job"] == job) & ranks["begin_ps"].notna()]
            mine = mine.assign(end_ps=mine["end_ps"].fillna(self._result.info["end_ps"]))
            path = critical(self._result, job)
            for rank, rows in mine.groupby("rank", sort=True):
                name = f"rank {rank} on {rows['host_name'].iloc[0]}"
                self._rank(process, name, rows)
                self._critical(process, name, path[path["rank"] == rank], JOB_ARROWS + number)

    def _rank(self, process: int, name: str, rows: pd.DataFrame) -> None:
        """A rank's computations; its collectives, on as many tracks as overlap; and when it only communicates."""
        order = int(name.split()[1]) + 1
        spans = rows.assign(begin=rows["begin_ps"].astype(float), end=rows["end_ps"].astype(float))
        spans = spans.sort_values(["begin", "end"], kind="stable")
        computes, collectives = spans[spans["what"] == "compute"], spans[spans["what"] == "collective"]
        tracks: dict[str, int] = {}
        until: dict[str, float] = {}
        for row in _dicts(computes) + _dicts(collectives):
            kind = "computes" if row["what"] == "compute" else "communicates"
            lanes = (f"{name}: {kind}{number}" for number in _numbers())
            lane = next(one for one in lanes if until.get(one, 0) <= row["begin"])
            if lane not in tracks:
                tracks[lane] = self._track(process, lane, order)
            until[lane] = row["end"]
            what = str(row["name"]) or str(row["what"])
            self._slice(tracks[lane], row["begin"], row["end"], what, {"iteration": int(row["iteration"])})
        alone = _exposed(computes, collectives)
        if alone:
            track = self._track(process, f"{name}: exposed", order)
            for begin, end in alone:
                self._slice(track, begin, end, "exposed communication", {})

    def _critical(self, process: int, name: str, path: pd.DataFrame, arrow: int) -> None:
        """A rank's parts of the critical path. Arrows lead from each part to the next, from rank to rank."""
        if not len(path):
            return
        track = self._track(process, f"{name}: critical path", int(name.split()[1]) + 1)
        for row in _dicts(path):
            what = PARTS[str(row["part"])] + (f": {row['name']}" if row["name"] else "")
            details = {key: int(row[key]) for key in ("to_rank", "flow") if not pd.isna(row[key])}
            self._slice(track, row["begin"] * 1e6, row["end"] * 1e6, what, details, arrow)

    def _failures(self) -> None:
        from clearway.reports.report import failures

        found = failures([self._result])
        if found:
            track = self._track(0, "failures", 0)
            for failure in found:
                self._instant(track, failure.at_ms * 1e9, failure.what, {})


class _Spans:
    """Spans of time, merged: those that overlap or meet are one."""

    def __init__(self, spans: list[tuple[float, float]]) -> None:
        whole: list[tuple[float, float]] = []
        for since, until in sorted(spans):
            if whole and since <= whole[-1][1]:
                whole[-1] = (whole[-1][0], max(whole[-1][1], until))
            else:
                whole.append((since, until))
        self.edges = np.array(whole, dtype=float).ravel()

    def have(self, at: float) -> bool:
        """Whether a time is in one of them."""
        return int(np.searchsorted(self.edges, at, side="right")) % 2 == 1


def _recoveries(rows: pd.DataFrame, end: float) -> list[tuple[float, float]]:
    """From when a part of a flow was lost, or its payload cut off, until it left its sender again."""
    gone = rows[(rows["lost"] != "") | rows["trimmed"]]
    if not len(gone):
        return []
    sent = rows[(rows["node"].astype(str) == rows["source"].astype(str)) & rows["link"].notna()]
    times = {offset: of.sort_values().to_numpy() for offset, of in sent.groupby("offset_bytes")["time_ps"]}
    spans: list[tuple[float, float]] = []
    for offset, at in zip(gone["offset_bytes"].tolist(), gone["time_ps"].tolist()):
        again = times.get(offset, np.array([]))
        later = again[np.searchsorted(again, at, side="right") :]
        spans.append((float(at), float(later[0]) if len(later) else end))
    return spans


def _numbers() -> Iterator[str]:
    """The numbers that tell tracks of one name apart: none, 2, 3, ..."""
    yield ""
    yield from (f" {number}" for number in itertools.count(2))


def _exposed(computes: pd.DataFrame, collectives: pd.DataFrame) -> list[tuple[float, float]]:
    """From when to when a rank takes part in a collective and does not compute."""
    edges = [
        (at, what, step)
        for what, rows in enumerate((computes, collectives))
        for column, step in (("begin", 1), ("end", -1))
        for at in rows[column].tolist()
    ]
    under_way, since, found = [0, 0], 0.0, list[tuple[float, float]]()
    for at, of in itertools.groupby(sorted(edges), key=lambda edge: edge[0]):
        if under_way[1] and not under_way[0]:
            # One that goes on is one.
            before = found.pop()[0] if found and found[-1][1] == since else since
            found.append((before, at))
        for _, what, step in of:
            under_way[what] += step
        since = at
    return found


def _lengths(rows: pd.DataFrame, waited: pd.DataFrame, whole: bool) -> Iterator[tuple[float, int]]:
    """How many bytes waited, at each change, or where only some packets were recorded whenever one of them left."""
    if not whole:
        yield from zip(rows["time_ps"], rows["waiting_bytes"].fillna(0).astype(int))
        return
    at = np.concatenate([waited["came_ps"], waited["time_ps"]])
    change = np.concatenate([waited["bytes"].astype(np.int64), -waited["bytes"].astype(np.int64)])
    order = np.argsort(at, kind="stable")
    yield from zip(at[order].tolist(), np.cumsum(change[order]).tolist())


def _packet_numbers(rows: pd.DataFrame) -> pd.Series[int]:
    """A number for each packet, the same on all its hops: its next hop is the next row that says the same of the same
    flow, one switch farther.
    """
    numbers, count = [], 0
    under_way: dict[tuple[Any, ...], list[int]] = {}
    columns = ["flow", "source", "destination", "says", "payload_bytes", "hop"]
    for *key, hop in zip(*(rows[column].tolist() for column in columns)):
        known = under_way.get((*key, hop - 1))
        if known:
            number = known.pop(0)
        else:
            number, count = count, count + 1
        under_way.setdefault((*key, hop), []).append(number)
        numbers.append(number)
    return pd.Series(numbers, index=rows.index, dtype="int64")


def _first_marked(rows: pd.DataFrame) -> pd.Series[bool]:
    """Whether a packet bears a mark that it had not on the link before."""
    before = rows["marked"].groupby(rows["packet"]).shift(1, fill_value=False)
    return rows["marked"] & ~before.astype(bool)


def _dicts(rows: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(key): value for key, value in row.items()} for row in rows.to_dict("records")]


def _names(rows: pd.DataFrame) -> list[str]:
    """Whose each packet is, and what it says."""
    whose = ["" if np.isnan(flow) else f"flow {flow:.0f} " for flow in rows["flow"].tolist()]
    said = zip(whose, rows["says"].astype(str), rows["transport"].astype(str))
    return [f"{flow}{says or transport}" for flow, says, transport in said]


def _order(name: str) -> tuple[str, int]:
    """Nodes by kind, then number."""
    letters = name.rstrip("0123456789")
    return letters, int(name[len(letters) :] or 0)
