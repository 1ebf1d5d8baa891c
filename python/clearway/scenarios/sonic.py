"""SONiC's configuration of a switch as a scenario: `clearway import sonic`.

The tables are those of CONFIG_DB (`config_db.json`) and of `pg_profile_lookup.ini`. All switches of the scenario are
set as the ports that most of the file's ports are like, or as those that were named. A key that
the simulator has no part for is named.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clearway import _core
from clearway.scenarios.quantity import LIGHT_M_PER_S

BYTES_MAX = 64 << 20
"""Larger files are no configurations of switches."""
FRAME_BYTES = 9_216
"""The largest frame that is assumed on links."""
BUFFER_MAX = 2**32 - 1
CLASSES = range(8)
COLOURS = ("green", "yellow", "red")
# Tables that are read, with the fields that mean something here; "*" for all.
READ = {
    "BUFFER_POOL": {"size", "type", "mode", "xoff"},
    "BUFFER_PROFILE": {"pool", "size", "dynamic_th", "static_th", "xon", "xoff", "xon_offset"},
    "BUFFER_PG": {"profile"},
    "BUFFER_QUEUE": {"profile"},
    "BUFFER_PORT_INGRESS_PROFILE_LIST": {"profile_list"},
    "BUFFER_PORT_EGRESS_PROFILE_LIST": {"profile_list"},
    "CABLE_LENGTH": {"*"},
    "DEFAULT_LOSSLESS_BUFFER_PARAMETER": {"default_dynamic_th"},
    "PORT": {"speed"},
    "QUEUE": {"scheduler", "wred_profile"},
    "SCHEDULER": {"type", "weight", "meter_type", "cir", "pir", "pbs"},
    "WRED_PROFILE": {
        "ecn",
        *(f"wred_{colour}_enable" for colour in ("green", "yellow", "red")),
        *(
            f"{colour}_{key}"
            for colour in ("green", "yellow", "red")
            for key in ("min_threshold", "max_threshold", "drop_probability")
        ),
    },
    "PORT_QOS_MAP": {
        "dscp_to_tc_map",
        "tc_to_queue_map",
        "tc_to_pg_map",
        "pfc_to_queue_map",
        "pfc_enable",
        "scheduler",
    },
    "PFC_WD": {"action", "detection_time", "restoration_time"},
    "DSCP_TO_TC_MAP": {"*"},
    "TC_TO_QUEUE_MAP": {"*"},
    "TC_TO_PRIORITY_GROUP_MAP": {"*"},
    "MAP_PFC_PRIORITY_TO_QUEUE": {"*"},
}
# Fields of PORT that say nothing about buffers and queues.
OF_PORTS = {
    "admin_status",
    "alias",
    "autoneg",
    "description",
    "fec",
    "index",
    "lanes",
    "mtu",
    "pfc_asym",
    "tpid",
    "role",
}
WRITTEN_BY = 'written by "clearway import sonic"'
"""Part of the first line of an imported scenario."""
OTHERS = ("BUFFER", "CABLE", "QUEUE", "SCHEDULER", "WRED", "QOS", "DSCP", "DOT1P", "TC_TO", "PFC", "LOSSLESS")
"""Parts of names of tables that are about buffers and queues: those that are not read are named."""


class SonicError(ValueError):
    """A key that can't be read, or asks for what no switch here can be."""


@dataclass
class Imported:
    """A scenario, and what of the configuration is not in it."""

    toml: str
    ports: list[str]
    notes: list[str]


def read(
    files: Iterable[Path],
    lookup: Path | None = None,
    ports: Iterable[str] = (),
    sizes: Mapping[str, int] | None = None,
) -> Imported:
    """Reads configurations, of which later ones add to earlier ones."""
    rows = lookup_of(lookup) if lookup is not None else []
    return _Import(tables_of(files), rows, list(ports), dict(sizes or {})).imported()


def settings_of(
    tables: dict[str, dict[str, Any]], rows: list[LookupRow], ports: Iterable[str], sizes: dict[str, int]
) -> tuple[Settings, list[str]]:
    """A switch's settings, as most of these ports have them (or most of all), and what is not modelled."""
    known = _Import(tables, rows, [], sizes)
    chosen = [port for port in ports if port in known.all]
    switch = _Import(tables, rows, chosen, sizes) if chosen else known
    return switch.settings(), switch.notes


def tables_of(files: Iterable[Path]) -> dict[str, dict[str, Any]]:
    """The tables of several files, of which later ones add to earlier ones."""
    tables: dict[str, dict[str, Any]] = {}
    for file in files:
        for name, table in _load(file).items():
            if isinstance(table, dict):
                tables.setdefault(name, {}).update(table)
    return tables


def _load(file: Path) -> dict[str, Any]:
    with file.open("rb") as opened:
        content = opened.read(BYTES_MAX + 1)
    if len(content) > BYTES_MAX:
        raise SonicError(f"{file}: has more than {BYTES_MAX >> 20} MB and is no configuration of a switch")
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise SonicError(f"{file}: is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise SonicError(f"{file}: is not a table of tables, as config_db.json is")
    return found


@dataclass(frozen=True)
class LookupRow:
    """A row of `pg_profile_lookup.ini`."""

    speed: int
    cable_m: float
    size: int
    xon: int
    xoff: int
    threshold: int
    xon_offset: int


def lookup_of(file: Path) -> list[LookupRow]:
    """The rows of `pg_profile_lookup.ini`."""
    rows = []
    text = file.read_text(encoding="utf-8", errors="replace")[:BYTES_MAX]
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        place = f"{file}:{number}"
        if len(words) not in (6, 7):
            raise SonicError(f"{place}: {line.strip()!r} is not speed, cable, size, xon, xoff, threshold, xon_offset")
        speed, cable, *numbers = words
        values = [whole_of(place, word) for word in numbers]
        rows.append(
            LookupRow(whole_of(place, speed), metres_of(place, cable), *values, *([0] if len(words) == 6 else []))
        )
    return rows


def whole_of(key: str, value: object) -> int:
    """A whole number; `SonicError` with the key if it is none."""
    try:
        return int(str(value))
    except ValueError:
        raise SonicError(f"{key}: {value!r} is not a whole number") from None


def metres_of(key: str, value: object) -> float:
    """A length such as 40m, in metres; `SonicError` with the key if it is none."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)m", str(value).strip())
    if found is None or float(found[1]) > 1_000_000:
        raise SonicError(f"{key}: {value!r} is not a length up to 1000000m, such as 40m")
    return float(found[1])


def _name(value: object) -> str:
    """A name, which older files write as a reference: [BUFFER_PROFILE|name]."""
    return str(value).strip("[]").split("|")[-1]


def _numbers(key: str, text: str) -> range:
    first, _, last = text.partition("-")
    found = range(whole_of(key, first), whole_of(key, last or first) + 1)
    if not found or found.start < 0 or found.stop > 64:
        raise SonicError(f"{key}: {text!r} is not a number or a range of numbers, such as 3-4")
    return found


@dataclass
class _Port:
    """The entries of one port in the tables."""

    groups: dict[int, str] = field(default_factory=dict)
    queues: dict[int, str] = field(default_factory=dict)
    service: dict[int, tuple[str | None, str | None]] = field(default_factory=dict)
    maps: dict[str, str] = field(default_factory=dict)
    limits: tuple[str, ...] = ()

    def kind(self) -> tuple[Any, ...]:
        parts = (self.groups, self.queues, self.service, self.maps)
        return (*(tuple(sorted(part.items(), key=str)) for part in parts), self.limits)


@dataclass(frozen=True)
class Settings:
    """A switch's settings, as TOML."""

    plain: tuple[str, ...]
    """Keys and values of `flow_control.mmu`, a line each."""
    lists: Mapping[str, Sequence[str]]
    """Elements of its lists of tables."""
    buffer: int
    """Bytes of all memory; 0 if no pool says."""

    def lines(self) -> list[str]:
        """The same below a table's name."""
        lists = [f"{key} = [\n" + "".join(map(_element, values)) + "]" for key, values in self.lists.items()]
        return [*self.plain, *lists]


class _Import:
    """A switch's tables, and the ports of it that are meant."""

    def __init__(
        self, tables: dict[str, dict[str, Any]], rows: list[LookupRow], chosen: list[str], sizes: dict[str, int]
    ) -> None:
        self.tables, self.rows, self.sizes, self.notes = tables, rows, sizes, list[str]()
        self.name_unread()
        self.all = self.every_port()
        self.chosen = self.choose(chosen)
        self.port = self.all[self.chosen[0]] if self.chosen else _Port()

    def table(self, name: str) -> dict[str, Any]:
        return self.tables.get(name, {})

    def entry(self, table: str, name: str, by: str) -> dict[str, Any]:
        found = self.table(table).get(name)
        if not isinstance(found, dict):
            raise SonicError(f"{by}: names {table}|{name}, which is not there")
        return found

    def name_unread(self) -> None:
        """Notes each key that is about buffers and queues and that nothing here stands for."""
        unread = Counter[str]()
        for name, table in self.tables.items():
            fields = READ.get(name)
            if fields is None:
                if any(part in name for part in OTHERS):
                    unread[f"{name}: the table is not modelled"] += 1
                continue
            for values in table.values():
                if isinstance(values, dict) and "*" not in fields:
                    beside = set(values) - fields - (OF_PORTS if name == "PORT" else set())
                    unread.update(f"{name}|*|{key}: is not modelled" for key in beside)
        self.notes += sorted(unread)

    def every_port(self) -> dict[str, _Port]:
        ports: dict[str, _Port] = {}
        for table in ("BUFFER_PG", "BUFFER_QUEUE", "QUEUE"):
            for key, values in self.table(table).items():
                names, _, numbers = key.rpartition("|")
                place = f"{table}|{key}"
                if not names or not isinstance(values, dict):
                    raise SonicError(f"{place}: is not a port and numbers, such as Ethernet0|3-4, with a table")
                for name in names.split(","):
                    port = ports.setdefault(name, _Port())
                    for number in _numbers(place, numbers):
                        self.note_number(port, table, number, values)
        for table in ("BUFFER_PORT_INGRESS_PROFILE_LIST", "BUFFER_PORT_EGRESS_PROFILE_LIST"):
            for names, values in self.table(table).items():
                for name in names.split(","):
                    listed = str(values.get("profile_list", "")) if isinstance(values, dict) else ""
                    port = ports.setdefault(name, _Port())
                    port.limits += tuple(_name(profile) for profile in listed.split(",") if profile)
        everywhere = self.table("PORT_QOS_MAP").get("global", {})
        for names, values in self.table("PORT_QOS_MAP").items():
            for name in names.split(",") if names != "global" and isinstance(values, dict) else ():
                port = ports.setdefault(name, _Port())
                port.maps = {key: _name(value) for key, value in {**everywhere, **values}.items()}
        return ports

    @staticmethod
    def note_number(port: _Port, table: str, number: int, values: dict[str, Any]) -> None:
        if table == "QUEUE":
            named = [_name(values[key]) if key in values else None for key in ("scheduler", "wred_profile")]
            port.service[number] = (named[0], named[1])
            return
        of = port.groups if table == "BUFFER_PG" else port.queues
        of[number] = _name(values.get("profile", ""))

    def closed(self, port: _Port) -> bool:
        """Whether a port has no memory: it is not in use."""
        return any(self.is_zero(profile) for profile in (*port.groups.values(), *port.queues.values()))

    def is_zero(self, name: str) -> bool:
        profile = self.table("BUFFER_PROFILE").get(name, {})
        return str(profile.get("dynamic_th")) == "-8" or (
            profile.get("static_th") == "0" and profile.get("size") == "0"
        )

    def choose(self, named: list[str]) -> list[str]:
        unknown = [name for name in named if name not in self.all]
        if unknown:
            raise SonicError(f"--ports: {unknown[0]} is in no table of buffers and queues")
        among = named or [name for name, port in self.all.items() if not self.closed(port)] or list(self.all)
        kinds: dict[tuple[Any, ...], list[str]] = {}
        for name in among:
            kinds.setdefault(self.all[name].kind(), []).append(name)
        most = max(kinds.values(), key=len, default=[])
        for others in kinds.values():
            if others is not most:
                shown = ", ".join(others[:3]) + (", ..." if len(others) > 3 else "")
                self.notes.append(f"{len(others)} ports are set in another way ({shown}): choose them with --ports")
        return most

    def imported(self) -> Imported:
        """A scenario with this one switch."""
        return Imported(self.scenario(self.settings()), self.chosen, self.notes)

    def settings(self) -> Settings:
        """The settings that follow from its tables; `SonicError` names a key that is wrong."""
        mmu: list[str] = []
        maps = self.maps(mmu)
        pools = self.pools(mmu)
        headroom = self.groups(mmu, pools, maps)
        self.queues(mmu, pools)
        self.limits(mmu, pools)
        self.schedule(mmu)
        self.port_rate(mmu)
        self.watchdog(mmu)
        ingress = [pool for pool in pools.values() if "ingress" in pool.sides]
        buffer = sum(pool.bytes + pool.headroom for pool in ingress) + headroom
        if buffer > BUFFER_MAX:
            largest = max(ingress, key=lambda pool: pool.bytes)
            raise SonicError(
                f"BUFFER_POOL|{largest.name}|size: pools of {buffer:,} bytes together; a simulated switch has "
                "4GB at most, and virtual output queues in memory outside of the chip are not modelled"
            )
        lists: dict[str, list[str]] = {}
        plain = []
        for line in mmu:
            key, _, value = line.partition(" = ")
            if key in ("pool", "group", "queue", "port"):
                lists.setdefault(key, []).append(value)
            else:
                plain.append(line)
        return Settings(tuple(plain), lists, buffer if ingress else 0)

    # The tables, one function each. -------------------------------------------------------------------------------

    def maps(self, mmu: list[str]) -> dict[str, list[int]]:
        named = self.port.maps
        kinds = (
            ("dscp_to_tc", "dscp_to_tc_map", "DSCP_TO_TC_MAP", 64),
            ("tc_to_queue", "tc_to_queue_map", "TC_TO_QUEUE_MAP", 8),
            ("tc_to_group", "tc_to_pg_map", "TC_TO_PRIORITY_GROUP_MAP", 8),
            ("pfc_to_queue", "pfc_to_queue_map", "MAP_PFC_PRIORITY_TO_QUEUE", 8),
        )
        found: dict[str, list[int]] = {}
        for key, reference, table, length in kinds:
            if reference in named:
                entries = self.entry(table, named[reference], f"PORT_QOS_MAP|{self.chosen[0]}|{reference}")
                place = f"{table}|{named[reference]}"
                numbers = {whole_of(place, k): whole_of(f"{place}|{k}", v) for k, v in entries.items()}
                for number, value in numbers.items():
                    if not (0 <= number < 64 and 0 <= value < 64):
                        raise SonicError(f"{place}|{number}: {value} is not a number from 0 to 63")
                    if number >= length or value not in CLASSES:
                        numbers[number] = 0
                        self.notes.append(f"{place}|{number}: {value} is not modelled: there are 8 classes; left out")
                found[key] = [numbers.get(number, 0) for number in range(length)]
        if "dscp_to_tc" in found:
            found["dscp"] = [self.dscp_of(found["dscp_to_tc"], label) for label in CLASSES]
        lossless = [
            whole_of("PORT_QOS_MAP|*|pfc_enable", word) for word in named.get("pfc_enable", "").split(",") if word
        ]
        found["lossless"] = lossless
        mmu.append(f"lossless = {lossless}")
        mmu.extend(f"maps.{key} = {values}" for key, values in found.items() if key != "lossless")
        return found

    @staticmethod
    def dscp_of(dscp_to_tc: list[int], label: int) -> int:
        """The DSCP of a class: 48 for acknowledgements and notifications, which are class 0 here; for others one of the
        traffic class with the same number, by preference that number itself."""
        if label == 0:
            return 48
        of_class = [dscp for dscp in range(64) if dscp_to_tc[dscp] == label]
        return label if label in of_class else (of_class or [0])[0]

    def pools(self, mmu: list[str]) -> dict[str, _Pool]:
        pools: dict[str, _Pool] = {}
        for name, values in self.table("BUFFER_POOL").items():
            place = f"BUFFER_POOL|{name}"
            kind = str(values.get("type", ""))
            if kind not in ("ingress", "egress", "both"):
                raise SonicError(f"{place}|type: {kind!r} is not ingress, egress or both")
            if "size" not in values and name not in self.sizes:
                raise SonicError(
                    f"{place}|size: is not there, since this switch works it out itself (the dynamic buffer model); "
                    f"give it with --size {name}=BYTES"
                )
            size = self.sizes.get(name, whole_of(f"{place}|size", values.get("size", 0)))
            sides = ("ingress", "egress") if kind == "both" else (kind,)
            shared = whole_of(f"{place}|xoff", values.get("xoff", 0))
            pools[name] = _Pool(name, size, shared, sides, str(values.get("mode", "dynamic")))
        covered = self.covered()
        for pool in pools.values():
            # A profile whose size holds its xoff has its headroom inside of the pool; here it stands beside it.
            pool.bytes -= covered.get(pool.name, 0)
            if pool.bytes < 0:
                raise SonicError(f"BUFFER_POOL|{pool.name}|size: is less than the headroom of its profiles")
        for pool in pools.values():
            if pool.bytes > 0:
                shared_too = f', headroom = "{pool.headroom}B"' if pool.headroom else ""
                for side in pool.sides:
                    more = shared_too if side == "ingress" else ""
                    mmu.append(
                        f'pool = {{ name = "{pool.name_on(side)}", side = "{side}", bytes = "{pool.bytes}B"{more} }}'
                    )
        return pools

    def covered(self) -> dict[str, int]:
        """By pool: headroom that its profiles count within their size."""
        ports = max(len(self.chosen), 1)
        found = Counter[str]()
        for group, name in self.port.groups.items():
            values = self.table("BUFFER_PROFILE").get(name, {})
            size, xon, xoff = (
                whole_of(f"BUFFER_PROFILE|{name}", values.get(key, 0)) for key in ("size", "xon", "xoff")
            )
            if xoff and size >= xon + xoff and group in CLASSES:
                found[_name(values.get("pool"))] += ports * xoff
        lossless = sum(group not in self.port.groups for group in self.lossless_groups())
        most = max((row.xoff for row in self.rows if row.size >= row.xon + row.xoff > row.xon), default=0)
        found["ingress_lossless_pool"] += ports * lossless * most
        return dict(found)

    def lossless_groups(self) -> list[int]:
        words = [word for word in self.port.maps.get("pfc_enable", "").split(",") if word]
        classes = [whole_of("PORT_QOS_MAP|*|pfc_enable", word) for word in words]
        name = self.port.maps.get("tc_to_pg_map")
        table = self.table("TC_TO_PRIORITY_GROUP_MAP").get(name or "", {})
        return sorted({whole_of("TC_TO_PRIORITY_GROUP_MAP", table.get(str(tc), tc)) for tc in classes})

    def given(self, name: str, by: str, pools: dict[str, _Pool], side: str) -> dict[str, str]:
        """A profile's keys, as values of TOML."""
        profile = self.entry("BUFFER_PROFILE", name, by)
        place = f"BUFFER_PROFILE|{name}"
        pool = pools.get(_name(profile.get("pool")))
        if pool is None or side not in pool.sides:
            raise SonicError(f"{place}|pool: {profile.get('pool')!r} is no {side} pool of BUFFER_POOL")
        numbers = {key: whole_of(f"{place}|{key}", value) for key, value in profile.items() if key != "pool"}
        size, xoff = numbers.get("size", 0), numbers.get("xoff", 0)
        reserved = size - xoff if xoff and size >= numbers.get("xon", 0) + xoff else size
        found = {"pool": f'"{pool.name_on(side)}"', "reserved": f'"{reserved}B"'}
        if "dynamic_th" in numbers:
            found["alpha"] = repr(2.0 ** numbers["dynamic_th"])
        elif "static_th" in numbers:
            found["threshold"] = f'"{numbers["static_th"]}B"'
        for key, ours in (("xoff", "headroom"), ("xon", "xon"), ("xon_offset", "xon_offset")):
            if numbers.get(key, 0) and side == "ingress":
                found[ours] = f'"{numbers[key]}B"'
        return found

    def groups(self, mmu: list[str], pools: dict[str, _Pool], maps: dict[str, list[int]]) -> int:
        """Writes the groups' tables. Returns their headroom on all ports, if each has its own."""
        to_group = maps.get("tc_to_group", list(CLASSES))
        lossless = sorted({to_group[tc] for tc in maps["lossless"]})
        tables: dict[tuple[tuple[str, str], ...], list[int]] = {}
        own = 0
        for group in CLASSES:
            name = self.port.groups.get(group, "NULL")
            if name != "NULL":
                values = self.given(name, f"BUFFER_PG|{self.chosen[0]}|{group}", pools, "ingress")
            elif group in lossless and pools:
                values = self.lossless_group(group, pools)
            else:
                continue
            tables.setdefault(tuple(values.items()), []).append(group)
            if group in lossless:
                shared = any(pool.headroom for pool in pools.values())
                own += 0 if shared else self.headroom(values)
        for items, groups in tables.items():
            names = dict.fromkeys(self.port.groups.get(group, "") for group in groups)
            from_ = ", ".join(f"BUFFER_PROFILE|{name}" for name in names if name not in ("", "NULL"))
            mmu.append(f"group = {{ groups = {groups}, {_inline(dict(items))} }}{_comment(from_)}")
        return own

    def lossless_group(self, group: int, pools: dict[str, _Pool]) -> dict[str, str]:
        """A lossless group that SONiC fills in itself, from the lookup table."""
        pool = next((pool for pool in pools.values() if "ingress" in pool.sides and pool.bytes > 0), None)
        pool = pools.get("ingress_lossless_pool", pool)
        if pool is None:
            raise SonicError(f"BUFFER_POOL: has no ingress pool for the lossless group {group}")
        values = {"pool": f'"{pool.name_on("ingress")}"'}
        if not self.rows:
            defaults = self.table("DEFAULT_LOSSLESS_BUFFER_PARAMETER").values()
            power = next((whole_of("default_dynamic_th", of["default_dynamic_th"]) for of in defaults), 0)
            said = f"BUFFER_PG|*|{group}: has no profile, as SONiC fills it in from pg_profile_lookup.ini (--lookup); "
            self.notes.append(f"{said}without it: headroom that suffices, and alpha 2^{power}")
            return {**values, "alpha": repr(2.0**power), "xon_offset": '"3000B"'}
        rows = []
        for row in self.rows:
            reserved = row.size - row.xoff if row.size >= row.xon + row.xoff else row.size
            limit = f'threshold = "{row.threshold}B"' if pool.mode == "static" else f"alpha = {2.0**row.threshold!r}"
            rows.append(
                f'{{ rate = "{row.speed}Mbps", cable_m = {row.cable_m}, reserved = "{reserved}B", '
                f'headroom = "{row.xoff}B", xon = "{row.xon}B", xon_offset = "{row.xon_offset}B", {limit} }}'
            )
        return {**values, "lookup": f"[{', '.join(rows)}]"}

    def headroom(self, values: dict[str, str]) -> int:
        given = values.get("headroom", "").strip('"B')
        rate, metres = self.link()
        on_cable = _core.headroom_by_formula(rate * 1_000_000, metres, FRAME_BYTES)
        most = max((row.xoff for row in self.rows), default=on_cable)
        return max(len(self.chosen), 2) * int(given or (most if "lookup" in values else on_cable))

    def queues(self, mmu: list[str], pools: dict[str, _Pool]) -> None:
        tables: dict[tuple[tuple[str, str], ...], list[int]] = {}
        for queue in CLASSES:
            scheduler, wred = self.port.service.get(queue, (None, None))
            values: dict[str, str] = {}
            profile = self.port.queues.get(queue, "NULL")
            if profile != "NULL":
                values = self.given(profile, f"BUFFER_QUEUE|{self.chosen[0]}|{queue}", pools, "egress")
            if wred is not None:
                values |= self.wred(wred, f"QUEUE|{self.chosen[0]}|{queue}|wred_profile")
            if scheduler is not None:
                values |= self.rates(scheduler, f"QUEUE|{self.chosen[0]}|{queue}|scheduler")
            if values:
                tables.setdefault(tuple(values.items()), []).append(queue)
        for items, queues in tables.items():
            names = dict.fromkeys(
                name
                for queue in queues
                for name in (
                    f"BUFFER_PROFILE|{self.port.queues.get(queue, 'NULL')}",
                    f"WRED_PROFILE|{self.port.service.get(queue, (None, None))[1]}",
                )
                if not name.endswith(("|NULL", "|None"))
            )
            mmu.append(f"queue = {{ queues = {queues}, {_inline(dict(items))} }}{_comment(', '.join(names))}")

    def wred(self, name: str, by: str) -> dict[str, str]:
        profile = self.entry("WRED_PROFILE", name, by)
        green, yellow, red = (self.curve(profile, f"WRED_PROFILE|{name}", colour) for colour in COLOURS)
        if green is None and yellow is None and red is None:
            self.notes.append(f"WRED_PROFILE|{name}|ecn: nothing is marked or dropped early; left out")
            return {}
        never = '{ min = "0B", max = "4GB", probability_max = 0.0, mark = false'
        others = "".join(
            f", {colour} = {of or never} }}" for colour, of in (("yellow", yellow), ("red", red)) if of != green
        )
        return {"ecn": f"{green or never}{others} }}"}

    @staticmethod
    def curve(profile: dict[str, Any], place: str, colour: str) -> str | None:
        """The beginning of a table for one colour; `None` if packets of that colour are never hit."""
        ecn = str(profile.get("ecn", "ecn_none"))
        marks = ecn == "ecn_all" or colour in ecn.split("_")[1:]
        drops = str(profile.get(f"wred_{colour}_enable", "false")).lower() == "true"
        if not marks and not drops:
            return None
        # A key that a colour lacks is as for green.
        least, most, percent = (
            whole_of(f"{place}|{colour}_{key}", profile.get(f"{colour}_{key}", profile.get(f"green_{key}", 0)))
            for key in ("min_threshold", "max_threshold", "drop_probability")
        )
        if not 0 <= percent <= 100:
            raise SonicError(f"{place}|{colour}_drop_probability: {percent} is not 0 to 100 percent")
        if least > most:
            raise SonicError(f"{place}|{colour}_min_threshold: {least} is above {colour}_max_threshold, {most}")
        more = f"drop = {str(drops).lower()}" + ("" if marks else ", mark = false")
        return f'{{ min = "{least}B", max = "{max(most, least + 1)}B", probability_max = {percent / 100}, {more}'

    def port_rate(self, mmu: list[str]) -> None:
        """The greatest rate of a port as a whole."""
        if "scheduler" in self.port.maps:
            name = self.port.maps["scheduler"]
            rates = self.rates(name, f"PORT_QOS_MAP|{self.chosen[0]}|scheduler")
            if "min_rate" in rates:
                self.notes.append(f"SCHEDULER|{name}|cir: is not modelled for a whole port; left out")
            mmu.extend(f"{key} = {rates[key]}" for key in ("max_rate", "burst") if key in rates)

    def rates(self, name: str, by: str) -> dict[str, str]:
        scheduler = self.entry("SCHEDULER", name, by)
        place = f"SCHEDULER|{name}"
        found = {}
        for key, ours in (("cir", "min_rate"), ("pir", "max_rate")):
            value = whole_of(f"{place}|{key}", scheduler.get(key, 0))
            if value and scheduler.get("meter_type", "bytes") != "bytes":
                self.notes.append(f"{place}|meter_type: {key} in packets a second is not modelled; left out")
            elif value:
                found[ours] = f'"{value * 8}bps"'
        burst = whole_of(f"{place}|pbs", scheduler.get("pbs", 0))
        if burst and "max_rate" in found:
            found["burst"] = f'"{burst}B"'
        return found

    def limits(self, mmu: list[str], pools: dict[str, _Pool]) -> None:
        seen = set[str]()
        for name in self.port.limits:
            side = "egress" if "egress" in name else "ingress"
            profile = self.entry("BUFFER_PROFILE", name, f"BUFFER_PORT_*_PROFILE_LIST|{self.chosen[0]}")
            pool = pools.get(_name(profile.get("pool")))
            if pool is not None and side not in pool.sides:
                side = pool.sides[0]
            values = self.given(name, f"BUFFER_PORT_*_PROFILE_LIST|{self.chosen[0]}", pools, side)
            if values["pool"] in seen:
                raise SonicError(f"BUFFER_PROFILE|{name}|pool: two profiles of one port name this pool")
            seen.add(values["pool"])
            keep = ("pool", "reserved", "alpha", "threshold")
            mmu.append(f"port = {{ {_inline({key: values[key] for key in keep if key in values})} }}")

    def schedule(self, mmu: list[str]) -> None:
        """Strict queues first, the highest number before the others (802.1p); then all others by weight."""
        strict: list[int] = []
        weighted: dict[int, int] = {}
        kinds = set[str]()
        for queue in sorted(CLASSES, reverse=True):
            name, _ = self.port.service.get(queue, (None, None))
            if name is None:
                weighted[queue] = 1
                continue
            scheduler = self.entry("SCHEDULER", name, f"QUEUE|{self.chosen[0]}|{queue}|scheduler")
            kind = str(scheduler.get("type", "WRR")).upper()
            if kind not in ("STRICT", "DWRR", "WRR"):
                raise SonicError(f"SCHEDULER|{name}|type: {kind!r} is not STRICT, DWRR or WRR")
            if kind == "STRICT":
                strict.append(queue)
                continue
            kinds.add(kind)
            weighted[queue] = whole_of(f"SCHEDULER|{name}|weight", scheduler.get("weight", 1))
            if not 1 <= weighted[queue] <= 255:
                raise SonicError(f"SCHEDULER|{name}|weight: {weighted[queue]} is not 1 to 255")
        if len(kinds) > 1:
            raise SonicError("SCHEDULER|*|type: queues of one port have WRR and DWRR; they need one of them")
        if not self.port.service:
            self.notes.append("QUEUE: no queue has a scheduler; all have equal weights")
        levels = [f"{{ queues = [{queue}] }}" for queue in strict]
        if weighted:
            by = ', by = "packets"' if kinds == {"WRR"} else ""
            levels.append(f"{{ queues = {list(weighted)}, weights = {list(weighted.values())}{by} }}")
        mmu.append(f"schedule = [{', '.join(levels)}]")

    def watchdog(self, mmu: list[str]) -> None:
        values = self.table("PFC_WD").get(self.chosen[0] if self.chosen else "", {})
        if not isinstance(values, dict) or "detection_time" not in values:
            return
        place = f"PFC_WD|{self.chosen[0]}"
        action = str(values.get("action", "drop"))
        if action not in ("drop", "forward"):
            self.notes.append(f"{place}|action: {action} is not modelled; no watchdog")
            return
        times = [whole_of(f"{place}|{key}", values.get(key, 0)) for key in ("detection_time", "restoration_time")]
        detection, restoration = times[0], times[1] or 2 * times[0]
        more = f'restoration = "{restoration}ms", action = "{action}"'
        mmu.append(f'watchdog = {{ detection = "{detection}ms", {more} }}')

    def link(self) -> tuple[int, float]:
        """Rate in Mbps and length in metres of the ports: those of most of them."""
        speeds = Counter(
            whole_of(f"PORT|{name}|speed", of["speed"])
            for name in self.chosen
            if "speed" in (of := self.table("PORT").get(name, {}))
        )
        cables = Counter[float]()
        for table in self.table("CABLE_LENGTH").values():
            for name in self.chosen:
                if name in table:
                    cables[metres_of(f"CABLE_LENGTH|*|{name}", table[name])] += 1
        return (speeds or Counter([100_000])).most_common(1)[0][0], (cables or Counter([5.0])).most_common(1)[0][0]

    def scenario(self, settings: Settings) -> str:
        rate, metres = self.link()
        if not any("speed" in self.table("PORT").get(name, {}) for name in self.chosen):
            self.notes.append("PORT|*|speed: is not there; the scenario has links of 100Gbps")
        hosts = min(max(len(self.chosen), 2), 256)
        shared = f'switch.buffer = {{ shared = {{ bytes = "{settings.buffer}B" }} }}\n' if settings.buffer else ""
        return (
            f"# A switch as SONiC configures it, {WRITTEN_BY}. The traffic is an example.\n"
            'transport = "dcqcn"\n'
            f'fabric.star = {{ hosts = {hosts}, rate = "{rate}Mbps", propagation = "{propagation_ns(metres)}ns" }}\n'
            f"{shared}{example_traffic(hosts)}\n[flow_control.mmu]\n" + "\n".join(settings.lines()) + "\n"
        )


def propagation_ns(metres: float) -> int:
    """The delay of a cable, in whole nanoseconds."""
    return max(round(metres / LIGHT_M_PER_S * 1e9), 1)


def example_traffic(hosts: int) -> str:
    """An incast, as an example of traffic."""
    degree = min(8, hosts - 1)
    return (
        '\n[[traffic]]\nname = "incast"\nsizes.constant = "1MB"\narrivals = "all_at_once"\nreceivers = "0"\n'
        f"pattern.incast.degree = {degree}\nflows = {degree}\n"
    )


@dataclass
class _Pool:
    name: str
    bytes: int
    headroom: int
    sides: tuple[str, ...]
    mode: str

    def name_on(self, side: str) -> str:
        """Its name: a pool of both sides is two here."""
        return self.name if len(self.sides) == 1 or side == "ingress" else f"{self.name}_{side}"


def _inline(values: dict[str, str]) -> str:
    return ", ".join(f"{key} = {value}" for key, value in values.items())


def _comment(names: str) -> str:
    """Where an element of a list comes from, as `clearway tune` reads it."""
    return f"  # {names}" if names else ""


def _element(value: str) -> str:
    value, hash_, names = value.partition("  # ")
    return f"    {value},{hash_}{names}\n"
