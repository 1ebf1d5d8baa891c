from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from clearway import _core

if TYPE_CHECKING:
    import polars as pl

    from clearway._plots import Plots

QUANTILES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}


class Table:
    """A table of results in the form that you like: Arrow, pandas, or polars. `docs/results.md` explains the columns.

    Indexing gives a column as a NumPy array, times and counts that there are not as NaN.
    """

    def __init__(self, arrow: pa.Table) -> None:
        self._arrow = arrow

    def to_arrow(self) -> pa.Table:
        """As an Arrow table; units and explanations are in the fields' metadata."""
        return self._arrow

    def to_pandas(self) -> pd.DataFrame:
        """As a pandas data frame; nulls of integers are kept."""
        types = {pa.uint64(): pd.UInt64Dtype(), pa.uint32(): pd.UInt32Dtype()}
        frame: pd.DataFrame = self._arrow.to_pandas(types_mapper=types.get)
        return frame

    def to_polars(self) -> pl.DataFrame:
        """As a polars data frame; needs `pip install clearway[polars]`."""
        import polars

        frame = polars.from_arrow(self._arrow)
        assert isinstance(frame, polars.DataFrame)
        return frame

    def __getitem__(self, column: str) -> npt.NDArray[Any]:
        values = self._arrow[column]
        if pa.types.is_dictionary(values.type):
            return np.asarray(values.cast(pa.string()).to_numpy(zero_copy_only=False))
        return np.asarray(values.to_numpy(zero_copy_only=False))

    def __len__(self) -> int:
        return int(self._arrow.num_rows)

    def __repr__(self) -> str:
        return f"Table({len(self)} rows: {', '.join(self._arrow.column_names)})"


class Result:
    """What a run gave: tables, a summary, and the scenario with every default filled in.

    Tables: `flows`, `queues`, `utilisation`, `links`, `counters`; with a flow control and samples also `congestion`; with entities
    also `entities`, `waits`, `aqs`; with a scheme that guarantees something (Harmony) also `guarantees`, `guaranteed_waits`; with
    `measure.arrivals` also `arrivals`. At flow level there are `flows`, `utilisation` and `links` alone. A run that was
    interrupted has what it had come to.
    """

    def __init__(self, name: str, tables: dict[str, pa.Table], info: dict[str, Any], scenario_toml: str) -> None:
        self.name = name
        self.tables = tables
        self.info = info
        self.scenario_toml = scenario_toml

    def __getattr__(self, name: str) -> Table:
        tables = self.__dict__.get("tables", {})
        if name not in tables:
            raise AttributeError(f"a result has no {name!r}; its tables are {', '.join(tables)}")
        return Table(tables[name])

    @property
    def digest(self) -> str | None:
        """Digest of everything that happened: equal for one scenario and seed on any machine and number of threads."""
        return self.info.get("digest")

    @property
    def level(self) -> str:
        """"packet", or "flow" for an estimate without packets."""
        return str(self.info.get("level", "packet"))

    @property
    def interrupted(self) -> bool:
        """Whether somebody ended the run before its end."""
        return bool(self.info["ended"] == "interrupted")

    @property
    def ok(self) -> bool:
        """Whether the run came to its end and its audit found everything in order."""
        return not self.interrupted and all(finding["ok"] for finding in self.info["audit"])

    def slowdown(self, by: str | None = None, bins: Sequence[float] | None = None) -> pd.DataFrame:
        """Slowdown of completed flows: how many, mean, and quantiles (linear between order statistics).

        `by`: nothing for all, `"class"`, `"transport"`, or `"size"` by flow length: `bins` are the limits in bytes
        (upper ones included), by default one and eight bandwidth-delay products: short, medium, long.
        """
        flows = self.flows
        slowdown = pd.Series(flows["slowdown"])
        if by is None:
            groups = pd.Series("all", index=slowdown.index, dtype="category")
        elif by == "size":
            groups = self.size_classes(bins)
        elif by in ("class", "transport"):
            groups = pd.Series(flows[by], index=slowdown.index).astype("category")
        else:
            raise ValueError(f"by={by!r}: slowdown can be told by size, class or transport")
        return _statistics(slowdown, groups)

    def size_classes(self, bins: Sequence[float] | None = None) -> pd.Series[Any]:
        """Each flow's class by length: short, medium or long, or the interval of `bins`; see `slowdown`."""
        labels = None if bins is not None else ["short", "medium", "long"]
        limits = list(bins) if bins is not None else [self.info["bdp_bytes"], 8 * self.info["bdp_bytes"]]
        return pd.cut(pd.Series(self.flows["bytes"].astype(float)), [0, *limits, np.inf], labels=labels)

    def fct(self) -> pd.DataFrame:
        """Completion times of completed flows in microseconds: how many, mean, and quantiles."""
        fct = pd.Series(self.flows["fct_ps"].astype(float) / 1e6)
        return _statistics(fct, pd.Series("all", index=fct.index, dtype="category"))

    def goodput(self) -> float:
        """Message bytes delivered a second, in bit/s, from the first start to the last delivery."""
        flows = self.flows
        delivered, started = flows["delivered_ps"].astype(float), flows["start_ps"].astype(float)
        done = ~np.isnan(delivered)
        if not done.any():
            return 0.0
        span = float(np.nanmax(delivered) - np.nanmin(started))
        return float(flows["bytes"][done].sum()) * 8e12 / span

    @property
    def unfinished(self) -> int:
        """Flows that did not complete; `flows["reason"]` says why."""
        return int(self.info["flows"] - self.info["flows_completed"])

    @property
    def dropped(self) -> int:
        """Packets lost: a buffer was full, a link or switch was down, a bit error hit, or an AQ's limit was reached. 0 at flow level."""
        if self.level == "flow":
            return 0
        lost = sum(self.links[cause].sum() for cause in ("overflow_packets", "dead_packets", "corrupted_packets"))
        return int(lost + (self.aqs["dropped_packets"].sum() if "aqs" in self.tables else 0))

    @property
    def resent(self) -> int:
        """Data packets sent again, over completed flows. 0 at flow level."""
        return 0 if self.level == "flow" else int(self.flows["resent_packets"].sum())

    @property
    def plot(self) -> Plots:
        """Pictures: `r.plot.slowdown()`, `r.plot.fct_cdf()`, ..."""
        from clearway._plots import Plots

        return Plots([self])

    def report(self, path: str | Path) -> Path:
        """Writes a report page, one file that needs no network."""
        from clearway._report import write

        return write([self], Path(path))

    def entity_rates(self, received: bool = False) -> pd.DataFrame:
        """Payload of each entity that arrived, in bit/s: a row an interval of measurement, by its end in seconds.

        `received`: what arrived at an entity's hosts in place of what it has sent.
        """
        if "entities" not in self.tables:
            raise ValueError(f"{self.name!r} has no entities: its scenario names none")
        frame = self.entities.to_pandas()
        column = "received_bytes" if received else "delivered_bytes"
        sent = frame.pivot(index="time_ps", columns="entity", values=column).astype(float)
        sent.index = pd.Index(sent.index.astype(float) / 1e12, name="time_s")
        sent.columns = pd.Index([str(name) for name in sent.columns], name="entity")
        return sent.mul(8).div(np.diff(sent.index, prepend=0.0), axis=0)

    def save(self, folder: str | Path) -> Path:
        """Writes the result as a folder of Parquet files, `run.json` and `scenario.toml`: all of it or nothing.

        An earlier result in that folder is replaced; anything else there is left alone and an error.
        """
        folder = Path(folder)
        if folder.exists() and not (folder / "run.json").exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise FileExistsError(f"{folder} exists and holds no result of a run; choose another place")
        folder.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        try:
            for name, table in self.tables.items():
                pq.write_table(table, part / f"{name}.parquet", compression="zstd")
            (part / "scenario.toml").write_text(self.scenario_toml, encoding="utf-8")
            info = {"name": self.name, **self.info}
            (part / "run.json").write_text(json.dumps(info, indent=2) + "\n", encoding="utf-8")
            part.chmod(0o755)
            if folder.exists():
                old = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
                os.replace(folder, old)
                os.replace(part, folder)
                shutil.rmtree(old)
            else:
                os.replace(part, folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)
        return folder

    @staticmethod
    def load(folder: str | Path) -> Result:
        """Reads a result back from its folder."""
        folder = Path(folder)
        try:
            info = json.loads((folder / "run.json").read_text(encoding="utf-8"))
            toml = (folder / "scenario.toml").read_text(encoding="utf-8")
            tables = {path.stem: pq.read_table(path) for path in sorted(folder.glob("*.parquet"))}
            name = str(info.pop("name"))
        except (OSError, ValueError, KeyError, pa.ArrowException) as error:
            raise ValueError(f"{folder} is no result of a run: {error}") from None
        return Result(name, tables, info, toml)

    def __repr__(self) -> str:
        info = self.info
        return f"Result({self.name!r}, {info['flows_completed']} of {info['flows']} flows, digest={self.digest})"


def _statistics(values: pd.Series[float], groups: pd.Series[Any]) -> pd.DataFrame:
    grouped = values.dropna().groupby(groups, observed=False)
    table = pd.DataFrame({"flows": grouped.count(), "mean": grouped.mean()})
    for name, quantile in QUANTILES.items():
        table[name] = grouped.quantile(quantile)
    table.index.name = None
    return table


def from_core(name: str, run: tuple[str, str, list[tuple[str, list[Any]]]]) -> tuple[dict[str, pa.Table], dict[str, Any], str]:
    """The tables, summary and scenario of what the core gives."""
    info, toml, tables = run
    return {table: _arrow(columns) for table, columns in tables}, json.loads(info), toml


_ARROW = {"u64": pa.uint64(), "u64?": pa.uint64(), "u32": pa.uint32(), "f64": pa.float64()}


def _arrow(columns: list[tuple[str, str, str, str, bytes, list[str]]]) -> pa.Table:
    arrays, fields = [], []
    for name, unit, doc, kind, raw, names in columns:
        buffer = pa.py_buffer(raw)
        if kind == "names":
            index = pa.Array.from_buffers(pa.uint32(), len(raw) // 4, [None, buffer])
            array = pa.DictionaryArray.from_arrays(index.cast(pa.int32()), pa.array(names, pa.string()))
        elif kind == "bool":
            array = pa.array(np.frombuffer(raw, np.bool_))
        elif kind == "u64?":
            values = np.frombuffer(raw, np.uint64)
            array = pa.array(values, mask=values == np.iinfo(np.uint64).max)
        else:
            type_ = _ARROW[kind]
            array = pa.Array.from_buffers(type_, len(raw) * 8 // type_.bit_width, [None, buffer])
        arrays.append(array)
        fields.append(pa.field(name, array.type, metadata={"unit": unit, "doc": doc}))
    metadata = {"clearway": _core.__version__}
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields, metadata=metadata))
