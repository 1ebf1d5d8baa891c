"""A result: its tables, its figures, its folder."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from clearway import _core
from clearway.files.places import check_result, undisturbed
from clearway.files.whole import replace_folder
from clearway.results import statistics
from clearway.results.read import checksum, read, sum_of, write_table
from clearway.results.tables import TABLES

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from clearway.reports.plots import Plots
    from clearway.results.explain import Explanation


RENAMED = {"from": "from_node", "to": "to_node", "offset": "offset_bytes"}
"""Earlier names of columns."""


class Table:
    """A result table, which pandas, polars, PyArrow and DuckDB take as it is. `docs/results.md` explains the columns.

    It hands its data over as Arrow: `pl.DataFrame(table)`, `pa.table(table)` and DuckDB copy none. `to_pandas` is much
    faster than `pd.DataFrame(table)`, which reads row by row, and keeps integers where some are missing.

    >>> import clearway as cw, duckdb, polars as pl, pyarrow as pa
    >>> flows = cw.run(cw.Scenario.load("examples/tiny.toml")).flows
    >>> pl.DataFrame(flows)["bytes"].sum(), pa.table(flows).num_rows, len(flows)
    (800000, 8, 8)
    >>> duckdb.sql("SELECT src, max(bytes) FROM flows GROUP BY src ORDER BY src").fetchall()[0]
    (0, 100000)

    A column is a NumPy array, with NaN for missing times and counts. A list of columns, or a slice of rows, is a table.
    A row is a dictionary, and iterating gives rows.

    >>> bool(flows["slowdown"].max() < 1.1), flows[["flow", "bytes"]][:2]
    (True, Table(2 rows: flow, bytes))
    >>> flows[["flow", "bytes"]][0], [row["source"] for row in flows][:2]
    ({'flow': 0, 'bytes': 100000}, ['host0', 'host1'])
    """

    def __init__(self, arrow: pa.Table) -> None:
        self._arrow = arrow

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The data for other libraries, by Arrow's PyCapsule interface."""
        return self._arrow.__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pa.Table:
        """As an Arrow table; units and explanations are in the fields' metadata."""
        return self._arrow

    def to_pandas(self) -> pd.DataFrame:
        """As a pandas data frame; nulls of integers are kept."""
        import pandas as pd

        types = {pa.uint64(): pd.UInt64Dtype(), pa.uint32(): pd.UInt32Dtype()}
        frame: pd.DataFrame = self._arrow.to_pandas(types_mapper=types.get)
        return frame

    def to_polars(self) -> pl.DataFrame:
        """As a polars data frame; needs `pip install clearway[polars]`."""
        import polars

        frame = polars.from_arrow(self._arrow)
        assert isinstance(frame, polars.DataFrame)
        return frame

    @property
    def columns(self) -> list[str]:
        """The names of its columns."""
        return [str(name) for name in self._arrow.column_names]

    @overload
    def __getitem__(self, key: str) -> npt.NDArray[Any]: ...
    @overload
    def __getitem__(self, key: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, key: slice | list[str]) -> Table: ...
    def __getitem__(self, key: str | int | slice | list[str]) -> npt.NDArray[Any] | dict[str, Any] | Table:
        if isinstance(key, slice):
            first, after, step = key.indices(len(self))
            rows = range(first, after, step)
            return Table(self._arrow.slice(first, len(rows)) if step == 1 else self._arrow.take(list(rows)))
        if isinstance(key, int | np.integer):
            if not -len(self) <= key < len(self):
                raise IndexError(f"there is no row {key}; the table has {len(self)}")
            row: dict[str, Any] = self._arrow.slice(key % len(self), 1).to_pylist()[0]
            return row
        if isinstance(key, list | tuple):
            return Table(self._arrow.select([self._known(name) for name in key]))
        values = self._arrow[self._known(key)]
        parts = [_numpy(chunk) for chunk in values.chunks if len(chunk)]
        if parts and all(part is not None for part in parts):
            return np.concatenate(parts) if len(parts) > 1 else parts[0]
        if pa.types.is_dictionary(values.type):
            return np.asarray(values.cast(pa.string()).to_numpy(zero_copy_only=False))
        return np.asarray(values.to_numpy(zero_copy_only=False))

    def _known(self, column: object) -> str:
        if not isinstance(column, str):
            raise TypeError(
                f"a table has columns by name, lists of names, rows by number, and slices, and no {column!r}; "
                "to_pandas(), to_polars() and to_arrow() have more"
            )
        if column not in self._arrow.column_names:
            if RENAMED.get(column) in self._arrow.column_names:
                raise KeyError(f"the column {column!r} is called {RENAMED[column]!r}: {column!r} is a word of SQL")
            raise KeyError(f"there is no column {column!r}; the columns are {', '.join(self.columns)}")
        return column

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self._arrow.to_batches(max_chunksize=4096):
            yield from batch.to_pylist()

    def __len__(self) -> int:
        return int(self._arrow.num_rows)

    def __contains__(self, column: object) -> bool:
        return column in self._arrow.column_names

    def _ipython_key_completions_(self) -> list[str]:
        return self.columns

    def __repr__(self) -> str:
        return f"Table({len(self)} rows: {', '.join(self.columns)})"


APPROXIMATE = " (approximate)"
"""The end of the name of a result of which a part was skipped by average rates."""


class Result:
    """The result of a run: tables, a summary, and the scenario with every default filled in.

    Tables: `flows`, `queues`, `utilisation`, `links`, `counters`; with a flow control and samples also `congestion`;
    with entities also `entities`, `waits`, `aqs`; with a scheme that guarantees bounds (Harmony) also `guarantees`,
    `guaranteed_waits`; with `measure.arrivals` also `arrivals`, with `measure.packets` also
    `packets`, with `measure.flows` also `states`, with `measure.events` also `events`, with `measure.ports` also
    `ports`; with training jobs also `jobs`, `collectives`, `ranks`, `critical`.
    At flow level only `flows`, `utilisation`, `links`, and those of jobs. With level "links" only `flows` and `links`.
    An interrupted run has its results so far.
    """

    def __init__(
        self, name: str, tables: Mapping[str, pa.Table | Table], info: dict[str, Any], scenario_toml: str
    ) -> None:
        self._tables = {key: of.to_arrow() if isinstance(of, Table) else of for key, of in tables.items()}
        self.info = info
        # So that every table and picture says it.
        self.name = f"{name}{APPROXIMATE}" if self.approximate and not name.endswith(APPROXIMATE) else name
        self.scenario_toml = scenario_toml

    def __getattr__(self, name: str) -> Table:
        return self._table(name)

    def __dir__(self) -> list[str]:
        """Includes only the tables that this result has."""
        return sorted({name for name in super().__dir__() if name not in TABLES} | set(self._tables))

    def _table(self, name: str) -> Table:
        tables = self.__dict__.get("_tables", {})
        if name not in tables:
            raise AttributeError(f"a result has no {name!r}; its tables are {', '.join(tables)}")
        return Table(tables[name])

    @property
    def tables(self) -> dict[str, Table]:
        """All tables by name: `r.tables["flows"]` is `r.flows`."""
        return {name: Table(of) for name, of in self._tables.items()}

    @property
    def flows(self) -> Table:
        """One row a flow."""
        return self._table("flows")

    @property
    def queues(self) -> Table:
        """One row a switch and sample, `measure.interval` apart."""
        return self._table("queues")

    @property
    def utilisation(self) -> Table:
        """One row a tier of links and sample."""
        return self._table("utilisation")

    @property
    def links(self) -> Table:
        """One row a directed link, over the whole run."""
        return self._table("links")

    @property
    def counters(self) -> Table:
        """One row a transport and counter."""
        return self._table("counters")

    @property
    def congestion(self) -> Table:
        """One row a sample, port and queue that is paused, in a hotspot, or a root's, if the scenario has a flow
        control.
        """
        return self._table("congestion")

    @property
    def entities(self) -> Table:
        """One row an entity and interval of `measure.interval`, if the scenario names entities."""
        return self._table("entities")

    @property
    def waits(self) -> Table:
        """One row an entity and kind of queue, over the whole run, if there are entities."""
        return self._table("waits")

    @property
    def aqs(self) -> Table:
        """One row an entity, switch and pipeline that has aqs of it, over the whole run, if there are entities."""
        return self._table("aqs")

    @property
    def arrivals(self) -> Table:
        """One row a data packet that came to a host of `measure.arrivals`, repetitions too."""
        return self._table("arrivals")

    @property
    def packets(self) -> Table:
        """One row a packet and link that it took, and one a packet that was lost, of those of `measure.packets`."""
        return self._table("packets")

    @property
    def events(self) -> Table:
        """One row an event of the kinds of `measure.events`: frames between neighbours, drops, marks, matching, ...

        >>> import clearway as cw
        >>> asked = {"transport": "phost", "measure.events": ["grants"]}
        >>> r = cw.run(cw.Scenario.load("examples/tiny.toml").with_(asked))
        >>> r.events.to_pandas().iloc[0][["event", "node", "to_node", "says"]].tolist()
        ['grants', 'host0', 'switch0', 'Rts tenant 0, packets 69, free 17']

        docs/results.md has the kinds.
        """
        return self._table("events")

    @property
    def ports(self) -> Table:
        """One row a change of a port of `measure.ports`: what waits at it, and what it has sent."""
        return self._table("ports")

    @property
    def states(self) -> Table:
        """One row a change of a host's state of a flow of `measure.flows`: window, rate, tokens, bytes in flight."""
        return self._table("states")

    @property
    def jobs(self) -> Table:
        """One row an iteration of a training job, if the scenario has jobs: its time, and what the time went into."""
        return self._table("jobs")

    @property
    def collectives(self) -> Table:
        """One row a collective that a group of ranks carried out, if the scenario has jobs: its time and bandwidths."""
        return self._table("collectives")

    @property
    def ranks(self) -> Table:
        """One row a rank and a computation or collective of it, if the scenario has jobs."""
        return self._table("ranks")

    @property
    def critical(self) -> Table:
        """One row a part of a job's critical path, in order, if the scenario has jobs."""
        return self._table("critical")

    @property
    def guarantees(self) -> Table:
        """One row a link that a switch sends on, over the whole run, if a transport guarantees something."""
        return self._table("guarantees")

    @property
    def guaranteed_waits(self) -> Table:
        """One row a quantile of the waits of data packets, over the whole run, if a transport guarantees something."""
        return self._table("guaranteed_waits")

    @property
    def measures(self) -> Table:
        """One row a flow and measurement of it, if its transport measures flows."""
        return self._table("measures")

    @property
    def digest(self) -> str | None:
        """Digest of the whole history: equal for one scenario and seed on any machine and number of threads."""
        return self.info.get("digest")

    @property
    def level(self) -> str:
        """ "packet", "links" for an estimate by links simulated alone, or "flow" for one without packets."""
        return str(self.info.get("level", "packet"))

    @property
    def estimated(self) -> bool:
        """Whether this is an estimate: not every packet was simulated on its whole way."""
        return self.level != "packet"

    @property
    def approximate(self) -> bool:
        """Whether a part of the run was skipped with `fast_forward = "approximate"`; the name then ends in
        " (approximate)".
        """
        return (self.digest or "").startswith("~")

    @property
    def interrupted(self) -> bool:
        """Whether the run was interrupted."""
        return bool(self.info["ended"] == "interrupted")

    @property
    def ok(self) -> bool:
        """Whether the run ended by itself and its audit found no fault."""
        return not self.interrupted and all(finding["ok"] for finding in self.info["audit"])

    def slowdown(self, by: str | None = None, bins: Sequence[float] | None = None) -> pd.DataFrame:
        """Slowdown of completed flows: count, mean, and quantiles (linear between order statistics), each with the ends
        of the interval that holds 95% of resamplings of this run's flows, as `mean low` and `mean high` (see
        `docs/results.md`). Too few flows have none. It is no confidence interval over seeds: `clearway.compare` has
        those.

        `by`: nothing for all flows, `"class"`, `"transport"`, or `"size"` for flow length. `bins` are its upper limits
        in bytes (inclusive), by default one and eight bandwidth-delay products: short, medium, long.
        """
        import pandas as pd

        flows = self.flows
        if by is None:
            return _statistics(flows["slowdown"], _all(len(flows)))
        if by == "size":
            return _statistics(flows["slowdown"], self.size_classes(bins).array)
        if by in ("class", "transport"):
            return _statistics(flows["slowdown"], pd.Categorical(flows[by]))
        raise ValueError(f"by={by!r}: slowdown can be grouped by size, class or transport")

    def size_classes(self, bins: Sequence[float] | None = None) -> pd.Series[Any]:
        """Each flow's class by length: short, medium or long, or the interval of `bins`; see `slowdown`."""
        import pandas as pd

        labels = None if bins is not None else ["short", "medium", "long"]
        limits = list(bins) if bins is not None else [self.info["bdp_bytes"], 8 * self.info["bdp_bytes"]]
        return pd.cut(pd.Series(self.flows["bytes"].astype(float)), [0, *limits, np.inf], labels=labels)

    def fct(self) -> pd.DataFrame:
        """Completion times of completed flows in microseconds: count, mean, and quantiles, with intervals as for
        `slowdown`.
        """
        return _statistics(self.flows["fct_ps"].astype(float) / 1e6, _all(len(self.flows)))

    def goodput(self) -> float:
        """Message bytes delivered per second, in bit/s, from the first start to the last delivery."""
        flows, rest = self.flows, self._rest
        delivered, started = flows["delivered_ps"].astype(float), flows["start_ps"].astype(float)
        done = ~np.isnan(delivered)
        last, first = delivered[done].tolist(), started[~np.isnan(started)].tolist()
        for times, key in ((last, "last_delivery_ps"), (first, "first_start_ps")):
            times += [float(rest[key])] if rest.get(key) is not None else []
        if not last or not first:
            return 0.0
        span = max(last) - min(first)
        delivered_bytes = float(flows["bytes"][done].sum()) + (rest.get("delivered_bytes") or 0)
        return delivered_bytes * 8e12 / span if span > 0 else 0.0

    @property
    def _rest(self) -> dict[str, Any]:
        """The share in the totals of flows without a row in `flows`: messages of jobs beyond `measure.rows_max`."""
        rest: dict[str, Any] = self.info.get("rest", {})
        return rest

    @property
    def unfinished(self) -> int:
        """Number of flows that did not complete; `flows["reason"]` says why."""
        return int(self.info["flows"] - self.info["flows_completed"])

    @property
    def dropped(self) -> int:
        """Packets lost: a buffer was full, a link or switch was down, there was no path or a loop, a link was lossy, a
        bit error occurred, an AQ's limit was reached, or a host lost them: at its rate limiter, whose queue was full,
        or because it takes packets in more slowly than they come. 0 in an estimate, which does not count them.
        """
        if self.estimated:
            return 0
        causes = (
            "overflow_packets",
            "dead_packets",
            "unroutable_packets",
            "expired_packets",
            "lossy_packets",
            "corrupted_packets",
        )
        lost = sum(self.links[cause].sum() for cause in causes if cause in self.links.columns)
        lost += sum(self.lost_in_hosts().values())
        return int(lost + (self.aqs["dropped_packets"].sum() if "aqs" in self._tables else 0))

    def lost_in_hosts(self) -> dict[str, int]:
        """Packets that hosts themselves have lost, by the counter that says so: `limiter_dropped_packets`, which found
        the queue of a rate limiter full, and `intake_lost_packets`, which found no room in a NIC whose host takes
        packets in more slowly than they come.
        """
        if "counters" not in self._tables:
            return {}
        names, values = self.counters["counter"], self.counters["value"]
        lost = {name: int(values[names == name].sum()) for name in ("limiter_dropped_packets", "intake_lost_packets")}
        return {name: packets for name, packets in lost.items() if packets}

    @property
    def resent(self) -> int:
        """Retransmitted data packets, over completed flows. 0 in an estimate, which does not count them."""
        if self.estimated:
            return 0
        return int(self.flows["resent_packets"].sum()) + (self._rest.get("resent_packets") or 0)

    @property
    def plot(self) -> Plots:
        """Plots: `r.plot.slowdown()`, `r.plot.fct_cdf()`, ..."""
        from clearway.reports.plots import Plots

        return Plots([self])

    def explain(self, flow: int) -> Explanation:
        """Why a flow took as long as it did, beside the median flow of its size: print it, or look at its `picture()`.

        >>> import clearway as cw
        >>> r = cw.run(cw.Scenario.load("examples/tiny.toml"))
        >>> print(r.explain(3).sentences[0])
        Flow 3 of tiny: 100,000 B of class ring over udp, from host3 to host4.
        """
        from clearway.results.explain import explain

        return explain(self, flow)

    def queue(self, link: str) -> pd.DataFrame:
        """The bytes that waited for a link, such as "leaf0-host0", or at a port, such as "leaf0:0", at each change:
        columns `time_us` and `bytes`. It needs the port in `ports` (`measure.ports`): then `most_bytes` is the
        most since the row before. Or all packets of the link in `packets` (`measure.packets`): then `packets` is how
        many waited.

        >>> import clearway as cw
        >>> r = cw.run(cw.Scenario.load("examples/tiny.toml").with_({"measure.ports": ["switch0:4"]}))
        >>> r.queue("switch0:4")["bytes"].max()
        np.int64(760)
        >>> r = cw.run(cw.Scenario.load("examples/tiny.toml").with_({"measure.packets": {"links": ["switch0-host4"]}}))
        >>> r.queue("switch0-host4")["bytes"].max()
        np.int64(760)
        """
        from clearway.results.ports import queue

        return queue(self, link)

    def use(self, link: str, every: str = "10us") -> pd.DataFrame:
        """Which share of its rate a link used in each interval, which ends at `time_us`: columns `time_us`, `bytes` and
        `use`. It needs the same as `queue`.

        >>> import clearway as cw
        >>> r = cw.run(cw.Scenario.load("examples/tiny.toml").with_({"measure.ports": ["host3-switch0"]}))
        >>> r.use("host3:0", every="5us")["use"].round(2).tolist()
        [1.0, 0.64, 0.0]
        """
        from clearway.results.ports import use

        return use(self, link, every)

    def progress(self, flow: int) -> pd.DataFrame:
        """The bytes that a flow has sent, and those that have arrived, at each change: columns `time_us`, `sent_bytes`,
        `arrived_bytes` and `between_bytes`. It needs the flow's packets (`measure.packets`).

        >>> import clearway as cw
        >>> r = cw.run(cw.Scenario.load("examples/tiny.toml").with_({"measure.packets": {"flows": [3]}}))
        >>> r.progress(3).iloc[-1][["sent_bytes", "arrived_bytes", "between_bytes"]].astype(int).tolist()
        [100000, 100000, 0]
        """
        from clearway.results.packets import progress

        return progress(self, flow)

    def state(self, flow: int) -> pd.DataFrame:
        """The state that the two hosts of a flow kept for it over time, in the words of its transport: columns
        `time_us`, `host` and one for each word, such as `window_bytes` or `tokens`, with the value of that host from
        then on. It needs the flow's states (`measure.flows`).

        >>> import clearway as cw
        >>> asked = {"transport": "dctcp", "measure.flows": {"flows": [3]}}
        >>> r = cw.run(cw.Scenario.load("examples/tiny.toml").with_(asked))
        >>> r.state(3)["window_bytes"].max()
        np.float64(29200.0)
        """
        from clearway.results.states import of_flow

        return of_flow(self, flow)

    def waiting(self, at: str, link: str | None = None) -> pd.DataFrame:
        """The packets that waited for a link at a time such as "1.2ms", in the order in which they left: rows of
        `packets`. Without `link`, for the one for which the most bytes waited.
        """
        from clearway.results.packets import waiting
        from clearway.results.times import time_of

        return waiting(self, time_of(at), link)

    def trace(self, path: str | Path) -> Path:
        """Writes what is in `packets` as a trace for Perfetto's viewer, https://ui.perfetto.dev, which opens it without
        sending it anywhere: links with packets in service and bytes that wait, flows, pauses, losses, marks, failures.

        >>> import clearway as cw
        >>> r = cw.run(cw.Scenario.load("examples/tiny.toml").with_({"measure.packets": {}}))
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     r.trace(f"{folder}/tiny.pftrace").name
        'tiny.pftrace'
        """
        from clearway.results.trace import write

        return write(self, Path(path))

    def view(self, path: str | Path) -> Path:
        """Writes a page in which a browser draws what is in `packets` over time: packets on links and in queues,
        pauses, losses, roots of congestion, and one packet's story. It needs no network; `clearway view` opens it.

        >>> import clearway as cw
        >>> r = cw.run(cw.Scenario.load("examples/tiny.toml").with_({"measure.packets": {}}))
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     r.view(f"{folder}/view.html").name
        'view.html'
        """
        from clearway.reports.view import write

        return write(self, Path(path))

    def report(self, path: str | Path) -> Path:
        """Writes a report page, one file that needs no network."""
        from clearway.reports.report import write

        return write([self], Path(path))

    def entity_rates(self, received: bool = False) -> pd.DataFrame:
        """Payload of each entity that arrived, in bit/s: a row for each measuring interval, by its end in seconds.

        `received`: what arrived at an entity's hosts, instead of what it has sent.
        """
        if "entities" not in self._tables:
            raise ValueError(f"{self.name!r} has no entities, because its scenario has no [[entity]]")
        import pandas as pd

        frame = self.entities.to_pandas()
        column = "received_bytes" if received else "delivered_bytes"
        sent = frame.pivot(index="time_ps", columns="entity", values=column).astype(float)
        sent.index = pd.Index(sent.index.astype(float) / 1e12, name="time_s")
        sent.columns = pd.Index([str(name) for name in sent.columns], name="entity")
        return sent.mul(8).div(np.diff(sent.index, prepend=0.0), axis=0)

    def save(self, folder: str | Path) -> Path:
        """Writes the result as a folder of Parquet files, `run.json` and `scenario.toml`: all of it or nothing.

        It replaces an earlier result in that folder. If the folder has a file that Clearway has not written, nothing is
        written: `FileExistsError` names the file.
        """
        with undisturbed():
            return self._save(check_result(Path(folder)))

    def _save(self, folder: Path) -> Path:
        def write(part: Path) -> None:
            for name, table in self._tables.items():
                write_table(table, part / f"{name}.parquet")
            (part / "scenario.toml").write_text(self.scenario_toml, encoding="utf-8")
            sums = {path.name: sum_of(path) for path in sorted(part.iterdir())}
            info = {"name": self.name, **self.info, "checksums": sums}
            info["checksum"] = checksum(info)
            (part / "run.json").write_text(json.dumps(info, indent=2) + "\n", encoding="utf-8")

        replace_folder(folder, write, check_result)
        return folder

    @staticmethod
    def load(folder: str | Path) -> Result:
        """Reads a result from its folder; `ResultError` says what is missing or damaged: the file, the column, and what
        would be right.
        """
        info, toml, tables = read(Path(folder))
        for ours in ("checksums", "checksum"):
            info.pop(ours, None)
        return Result(str(info.pop("name")), tables, info, toml)

    def __repr__(self) -> str:
        info = self.info
        return f"Result({self.name!r}, {info['flows_completed']} of {info['flows']} flows, digest={self.digest})"


def _all(count: int) -> pd.Categorical[Any]:
    """One group with all rows, even if there are none."""
    import pandas as pd

    return pd.Categorical(["all"] * count, categories=["all"])


def _statistics(values: npt.NDArray[Any], groups: Any) -> pd.DataFrame:
    """One row for each category of `groups`, a categorical."""
    import pandas as pd

    known = np.asarray(values, dtype=float)
    rows = [statistics.of_values(known[groups.codes == code]) for code in range(len(groups.categories))]
    index = pd.CategoricalIndex(groups.categories, categories=groups.categories, ordered=groups.ordered)
    # One frame at the end: a column added to a frame costs more than its numbers, and sweeps have thousands of these.
    columns = ["flows", "mean", *statistics.QUANTILES]
    columns += [f"{name} {end}" for name in columns[1:] for end in ("low", "high")]
    of = {column: np.array([row[column] for row in rows], dtype=float) for column in columns}
    return pd.DataFrame({**of, "flows": of["flows"].astype(int)}, index=index)


def from_core(
    name: str, run: tuple[str, str, list[tuple[str, list[Any]]]]
) -> tuple[dict[str, pa.Table], dict[str, Any], str]:
    """Tables, summary and scenario from the core's output."""
    info, toml, tables = run
    return {table: _arrow(columns) for table, columns in tables}, json.loads(info), toml


IDS = ("flow", "link", "root_link", "to_rank")
"""Numbers of things, which have one type in every table, so that tables join."""
_NUMPY: dict[pa.DataType, Any] = {
    pa.uint64(): np.uint64,
    pa.uint32(): np.uint32,
    pa.int32(): np.int32,
    pa.float64(): np.float64,
}


def _numpy(chunk: pa.Array) -> Any:
    """A column, or a part of one, as `to_numpy` gives it, which would import pandas or all of Arrow's functions. `None`
    of a type that tables here don't have.
    """
    rows, buffers = slice(chunk.offset, chunk.offset + len(chunk)), list(chunk.buffers())
    if pa.types.is_dictionary(chunk.type) and not chunk.null_count:
        return np.array(chunk.dictionary.to_pylist(), dtype=object)[_numpy(chunk.indices)]
    if pa.types.is_boolean(chunk.type) and not chunk.null_count:
        return _of_bits(buffers[1], rows)
    if chunk.type not in _NUMPY:
        return None
    values = np.frombuffer(buffers[1], _NUMPY[chunk.type])[rows]
    return values if not chunk.null_count else np.where(_of_bits(buffers[0], rows), values, np.nan)


def _of_bits(buffer: pa.Buffer, rows: slice) -> npt.NDArray[np.bool_]:
    return np.unpackbits(np.frombuffer(buffer, np.uint8), bitorder="little")[rows].astype(np.bool_)


_ARROW = {"u64": pa.uint64(), "u64?": pa.uint64(), "u32": pa.uint32(), "f64": pa.float64()}


# Arrays of Arrow from their bytes: `pa.array` would import pandas, to see whether it is given a series, and that takes
# longer than a small run.


def _bits(of: npt.NDArray[np.bool_]) -> pa.Buffer:
    """Truths as Arrow keeps them."""
    return pa.py_buffer(np.packbits(of, bitorder="little").tobytes())


def _strings(texts: Sequence[str]) -> pa.Array:
    encoded = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    return pa.StringArray.from_buffers(len(texts), pa.py_buffer(ends.tobytes()), pa.py_buffer(b"".join(encoded)))


def _arrow(columns: list[tuple[str, str, str, str, bytes, list[str]]]) -> pa.Table:
    arrays, fields = [], []
    for name, unit, doc, kind, raw, names in columns:
        buffer = pa.py_buffer(raw)
        if kind == "names":
            # Fewer than 2^31 names, so that the core's unsigned numbers are the same signed.
            index = pa.Array.from_buffers(pa.int32(), len(raw) // 4, [None, buffer])
            array = pa.DictionaryArray.from_arrays(index, _strings(names))
        elif kind == "bool":
            array = pa.Array.from_buffers(pa.bool_(), len(raw), [None, _bits(np.frombuffer(raw, np.bool_))])
        elif kind == "u64?":
            values = np.frombuffer(raw, np.uint64)
            known, type_ = values != np.iinfo(np.uint64).max, pa.uint64()
            if name in IDS:
                buffer, type_ = pa.py_buffer(np.where(known, values, 0).astype(np.uint32).tobytes()), pa.uint32()
            array = pa.Array.from_buffers(type_, len(known), [_bits(known), buffer])
        else:
            type_ = _ARROW[kind]
            array = pa.Array.from_buffers(type_, len(raw) * 8 // type_.bit_width, [None, buffer])
        arrays.append(array)
        metadata = {"unit": unit, "doc": doc} | ({"missing": "where there is none"} if kind == "u64?" else {})
        fields.append(pa.field(name, array.type, metadata=metadata))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields, metadata={"clearway": _core.__version__}))


for _name, _columns in TABLES.items():
    # What a notebook shows for `r.flows?`.
    _property = getattr(Result, _name)
    _property.__doc__ = f"{_property.__doc__} Columns: {', '.join(f'`{column}`' for column in _columns)}."

load = Result.load
