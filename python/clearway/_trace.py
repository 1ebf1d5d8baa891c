"""Traces for Perfetto's viewer (ui.perfetto.dev), from the packets of a result: a process for each node, in it a track
for each link with the packets in service and one with the bytes that wait, a track for each flow, and what neighbours
were told to hold back. Arrows follow each packet from hop to hop.

The format is Perfetto's own (TrackEvent), written by its authors' package. Its times are whole nanoseconds; those of
each packet to the picosecond are among its details.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackDescriptor, TrackEvent
from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder

from clearway._packets import is_whole, packets, pauses

if TYPE_CHECKING:
    from clearway._results import Result


def write(result: Result, path: Path) -> Path:
    """Writes the trace of a result with recorded packets: the whole file or none."""
    rows = packets(result)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, part = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            _Trace(result, rows, file).write()
        Path(part).chmod(0o644)
        Path(part).replace(path)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise
    return path


class _Trace:
    def __init__(self, result: Result, rows: pd.DataFrame, file: IO[bytes]) -> None:
        self._result, self._rows = result, rows
        self._builder = StreamingTraceProtoBuilder(file)
        self._tracks = 0
        self._nodes: dict[str, int] = {}

    def write(self) -> None:
        rows = self._rows
        names = [str(name) for name in dict.fromkeys([*rows["node"], *rows["to"]]) if name]
        for name in sorted(names, key=_order):
            self._node(name)
        self._flows()
        sent = rows[rows["link"].notna()]
        sent = sent.assign(packet=_packet_numbers(sent), first_marked=_first_marked(sent))
        for _, on_link in sent.groupby("link", sort=True):
            self._link(on_link)
        for row in _dicts(rows[rows["lost"] != ""]):
            self._instant(self._nodes[row["node"]], row["time_ps"], f"lost, {row['lost']}: {_name(row)}", row)
        self._pauses()
        self._failures()

    def _node(self, name: str) -> None:
        """A node's process."""
        track = self._nodes[name] = self._new_track()
        packet = self._builder.create_packet()
        packet.track_descriptor.uuid = track
        packet.track_descriptor.process.pid = len(self._nodes)
        packet.track_descriptor.process.process_name = name
        packet.track_descriptor.child_ordering = TrackDescriptor.ChildTracksOrdering.EXPLICIT
        self._builder.write_packet(packet)

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

    def _event(self, track: int, at_ps: float) -> Any:
        packet = self._builder.create_packet()
        packet.timestamp = int(at_ps) // 1000
        packet.trusted_packet_sequence_id = 1
        packet.track_event.track_uuid = track
        return packet

    def _slice(
        self, track: int, begin_ps: float, end_ps: float, name: str, said: dict[str, Any], arrow: int = -1
    ) -> None:
        begin = self._event(track, begin_ps)
        begin.track_event.type = TrackEvent.TYPE_SLICE_BEGIN
        begin.track_event.name = name
        _annotate(begin, said)
        if arrow >= 0:
            begin.track_event.flow_ids.append(arrow)
        self._builder.write_packet(begin)
        self._end(track, end_ps)

    def _end(self, track: int, end_ps: float) -> None:
        end = self._event(track, end_ps)
        end.track_event.type = TrackEvent.TYPE_SLICE_END
        self._builder.write_packet(end)

    def _instant(self, track: int, at_ps: float, name: str, said: dict[str, Any]) -> None:
        event = self._event(track, at_ps)
        event.track_event.type = TrackEvent.TYPE_INSTANT
        event.track_event.name = name
        _annotate(event, said)
        self._builder.write_packet(event)

    def _number(self, track: int, at_ps: float, value: int) -> None:
        event = self._event(track, at_ps)
        event.track_event.type = TrackEvent.TYPE_COUNTER
        event.track_event.counter_value = value
        self._builder.write_packet(event)

    def _flows(self) -> None:
        """A flow's track, at its sender: from its start to its end, and in that until its first packet left."""
        seen = set(self._rows["flow"].dropna().astype(int))
        flows = self._result.flows.to_pandas()
        first = self._rows[self._rows["payload_bytes"] > 0].groupby("flow")["time_ps"].min()
        last = self._rows[self._rows["payload_bytes"] > 0].groupby("flow")["last_ps"].max()
        for flow in _dicts(flows[flows["flow"].isin(seen)]):
            number, parent = flow["flow"], self._nodes.get(f"host{flow['src']}")
            if parent is None or pd.isna(flow["start_ps"]):
                continue
            end = flow["completed_ps"] if not pd.isna(flow["completed_ps"]) else self._result.info["end_ps"]
            track = self._track(parent, f"flow {number} to host{flow['dst']}", 1 << 20 | min(number, 1 << 20))
            begin = self._event(track, flow["start_ps"])
            begin.track_event.type = TrackEvent.TYPE_SLICE_BEGIN
            begin.track_event.name = f"flow {number}: {flow['bytes']:,} B to host{flow['dst']}, {flow['transport']}"
            _annotate(begin, {key: flow[key] for key in ("class", "status", "slowdown") if key in flow})
            self._builder.write_packet(begin)
            if number in first.index:
                self._slice(track, flow["start_ps"], first[number], "waits until its first packet leaves", {})
                if last[number] < end:
                    self._slice(track, first[number], last[number], "sends", {})
                    self._slice(track, last[number], end, "until it is complete", {})
            self._end(track, end)

    def _link(self, rows: pd.DataFrame) -> None:
        """A link's packets in service, and how many bytes wait for it."""
        one: Any = rows.iloc[0]
        rank = int(one["link"]) * 2
        track = self._track(self._nodes[one["node"]], f"to {one['to']}", rank)
        for row in _dicts(rows):
            self._slice(track, row["time_ps"], row["last_ps"], _name(row), row, row["packet"])
            if row["first_marked"]:
                self._instant(track, row["time_ps"], f"marked: {_name(row)}", row)
        waited = rows[rows["time_ps"] > rows["came_ps"]]
        if not len(waited):
            return
        numbers = self._track(self._nodes[one["node"]], f"waits for {one['to']}", rank + 1, "bytes")
        for at, value in _lengths(rows, waited, is_whole(self._result)):
            self._number(numbers, at, value)

    def _pauses(self) -> None:
        """What each node was told to hold back, on a track for each neighbour that said it."""
        held = pauses(self._result)
        for (node, by, says), rows in held.groupby(["node", "by", "says"], sort=True):
            track = self._track(self._nodes[node], f"held by {by}: {says}", 1 << 19)
            for begin, end in zip(rows["from_ps"], rows["to_ps"]):
                self._slice(track, begin, end, str(says), {})

    def _failures(self) -> None:
        from clearway._report import failures

        found = failures([self._result])
        if found:
            track = self._track(0, "failures", 0)
            for failure in found:
                self._instant(track, failure.at_ms * 1e9, failure.what, {})


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
    numbers, under_way, count = [], {}, 0
    keys = zip(rows["flow"], rows["source"], rows["destination"], rows["says"], rows["payload_bytes"], rows["hop"])
    for *key, hop in keys:
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
    numbers = _packet_numbers(rows)
    before = rows["marked"].groupby(numbers).shift(1, fill_value=False)
    return rows["marked"] & ~before.astype(bool)


def _dicts(rows: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(key): value for key, value in row.items()} for row in rows.to_dict("records")]


def _name(row: dict[str, Any]) -> str:
    flow = "" if pd.isna(row["flow"]) else f"flow {int(row['flow'])} "
    return f"{flow}{row['says']}" if row["says"] else f"{flow}{row['transport']}"


def _annotate(event: Any, said: dict[str, Any]) -> None:
    """Details that the viewer shows beside a slice."""
    for key, value in said.items():
        if key in ("link", "node", "to", "packet", "first_marked") or value == "" or pd.isna(value):
            continue
        note = event.track_event.debug_annotations.add()
        note.name = key
        if isinstance(value, bool | np.bool_):
            note.bool_value = bool(value)
        elif isinstance(value, str):
            note.string_value = value
        elif float(value).is_integer():
            note.int_value = int(value)
        else:
            note.double_value = float(value)


def _order(name: str) -> tuple[str, int]:
    """Nodes by kind, then number."""
    letters = name.rstrip("0123456789")
    return letters, int(name[len(letters) :] or 0)
