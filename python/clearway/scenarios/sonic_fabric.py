"""A fabric of switches that SONiC configures, each with a configuration of its own or that of its role.

Which ports are linked is in the configurations themselves (`DEVICE_NEIGHBOR`), in LLDP's tables (`LLDP_ENTRY_TABLE`, or
what `lldpctl -f json` prints), or in a file of nodes and links, as scenarios have it. Names of switches and neighbours
stay; ports are named in the written file of links.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clearway.scenarios import sonic
from clearway.scenarios.sonic import WRITTEN_BY, LookupRow, Settings, SonicError

LINKS_MAX = 1_000_000
End = tuple[str, str]
"""A node and its port."""


@dataclass
class ImportedFabric:
    """A scenario, the file of links beside it, and what of the configurations is not in it."""

    toml: str
    graph: str | None
    """Nodes and links; none if a file of them was given."""
    switches: list[str]
    notes: list[str]


@dataclass(frozen=True)
class _Link:
    one: End
    other: End
    mbps: int
    metres: float

    def line(self) -> str:
        words = f"link {self.one[0]} {self.other[0]} {self.mbps}Mbps {sonic.propagation_ns(self.metres)}ns"
        return f"{words}  # {self.one[1]} {self.other[1]}".rstrip()


def read(
    configs: Sequence[tuple[str, Path]],
    graph_name: str,
    topology: Path | None = None,
    lookup: Path | None = None,
    sizes: Mapping[str, int] | None = None,
) -> ImportedFabric:
    """Reads configurations by names of switches, of which one with an asterisk at its end stands for all that begin
    like it. `graph_name` is how the scenario calls the file of links; `topology` is one that is there already.
    """
    files: dict[str, list[Path]] = {}
    for pattern, file in configs:
        files.setdefault(pattern, []).append(file)
    tables = {pattern: sonic.tables_of(of) for pattern, of in files.items()}
    rows = sonic.lookup_of(lookup) if lookup is not None else []
    return _Fabric(tables, rows, dict(sizes or {})).imported(graph_name, topology)


class _Fabric:
    def __init__(
        self, tables: Mapping[str, dict[str, dict[str, Any]]], rows: list[LookupRow], sizes: dict[str, int]
    ) -> None:
        self.tables, self.rows, self.sizes = tables, rows, sizes
        self.notes: list[str] = []

    def imported(self, graph_name: str, topology: Path | None) -> ImportedFabric:
        if topology is not None:
            names, ports = _nodes(topology), dict[str, list[str]]()
            graph = None
        else:
            links = list(self.links())
            if not links:
                raise SonicError(
                    "DEVICE_NEIGHBOR: no configuration says which ports are linked; give LLDP's tables as NAME=FILE "
                    "too, or a file of nodes and links by --topology"
                )
            names = list(dict.fromkeys(end[0] for link in links for end in (link.one, link.other)))
            ports = {name: [] for name in names}
            for link in links:
                for node, port in (link.one, link.other):
                    ports[node].append(port)
            graph = self.graph(names, links)
        switches = [name for name in names if self.pattern(name) is not None]
        unused = [of for of in self.tables if not any(self.pattern(name) == of for name in names)]
        if unused:
            raise SonicError(f"{unused[0]}: no switch has this name; the nodes are {', '.join(sorted(names)[:8])}, ...")
        if topology is not None and (missing := next((n for n in _switches(topology) if n not in switches), None)):
            raise SonicError(
                f"{missing}: {topology} has this switch, and no configuration is for it; give {missing}=FILE"
            )
        roles = self.roles(switches, ports)
        hosts = len(names) - len(switches)
        toml = (
            f"# A fabric of switches as SONiC configures them, {WRITTEN_BY}. The traffic is an example.\n"
            f'transport = "dcqcn"\nfabric.file.path = "{graph_name}"\n{sonic.example_traffic(max(hosts, 2))}{roles}'
        )
        return ImportedFabric(toml, graph, switches, list(dict.fromkeys(self.notes)))

    def pattern(self, name: str) -> str | None:
        """The configuration of a node: that of its name, or that of a name with an asterisk; none for a host."""
        if name in self.tables:
            return name
        return next((of for of in self.tables if of.endswith("*") and name.startswith(of[:-1])), None)

    def links(self) -> Iterator[_Link]:
        """Each link once, in the order of the tables."""
        told: dict[End, End] = {}
        for name, tables in self.tables.items():
            if name.endswith("*"):
                if any(_neighbours(name, tables)):
                    raise SonicError(
                        f"{name}: its tables say which ports are linked, and a name with an asterisk stands for "
                        "several switches; give each switch its own, or --topology"
                    )
                continue
            for port, (neighbour, port_there) in _neighbours(name, tables):
                self.check_switch(name, tables, neighbour)
                told[name, port] = (neighbour, port_there)
        if len(told) > LINKS_MAX:
            raise SonicError(f"{len(told):,} ports are linked, and at most {LINKS_MAX:,} can be")
        seen = set[frozenset[End]]()
        for end, there in told.items():
            back = told.get(there)
            if back is not None and back != end:
                raise SonicError(
                    f"{end[0]}|{end[1]}: is linked to {there[0]}|{there[1]}, which says that it is linked to "
                    f"{back[0]}|{back[1]}"
                )
            if frozenset((end, there)) not in seen:
                seen.add(frozenset((end, there)))
                yield self.link(end, there)

    def check_switch(self, name: str, tables: Mapping[str, Any], neighbour: str) -> None:
        """Refuses a neighbour that is a switch and has no configuration."""
        kind = str(tables.get("DEVICE_NEIGHBOR_METADATA", {}).get(neighbour, {}).get("type", ""))
        if kind.endswith("Router") and self.pattern(neighbour) is None:
            raise SonicError(
                f"{neighbour}: {name} says that it is a {kind}, and no configuration is for it; give {neighbour}=FILE"
            )

    def link(self, one: End, other: End) -> _Link:
        speeds, cables = {}, {}
        for node, port in (one, other):
            tables = self.tables.get(self.pattern(node) or "", {})
            speed = tables.get("PORT", {}).get(port, {}).get("speed")
            if speed is not None:
                speeds[f"{node}|{port}"] = sonic.whole_of(f"{node}: PORT|{port}|speed", speed)
            for table in tables.get("CABLE_LENGTH", {}).values():
                if isinstance(table, dict) and port in table:
                    cables[f"{node}|{port}"] = sonic.metres_of(f"{node}: CABLE_LENGTH|*|{port}", table[port])
        if len(set(speeds.values())) > 1:
            said = " and ".join(f"{end} {speed} Mbps" for end, speed in speeds.items())
            raise SonicError(f"PORT|*|speed: a link has {said}; its ends must have one speed")
        if not speeds:
            raise SonicError(f"{one[0]}: PORT|{one[1]}|speed: is not there, so the link to {other[0]} has no rate")
        if len(set(cables.values())) > 1:
            said = " and ".join(f"{end} {length:g}m" for end, length in cables.items())
            self.notes.append(f"CABLE_LENGTH|*: a link has {said}; the longer counts")
        return _Link(one, other, next(iter(speeds.values())), max(cables.values(), default=5.0))

    def graph(self, names: Sequence[str], links: Sequence[_Link]) -> str:
        for name in names:
            if not re.fullmatch(r"[\w.:-]{1,63}", name):
                raise SonicError(f"{name!r}: is no name of a node: letters, digits, and . : - _ are")
        lines = ["# Nodes and links, and the ports at both ends."]
        lines += [f"{'host' if self.pattern(name) is None else 'switch'} {name}" for name in names]
        return "\n".join([*lines, *(link.line() for link in links)]) + "\n"

    def roles(self, switches: Sequence[str], ports: Mapping[str, Sequence[str]]) -> str:
        """A table of `flow_control.mmu.role` for the switches that are alike."""
        alike: dict[str, list[str]] = {}
        for name in switches:
            settings = self.settings(name, ports.get(name, ()))
            buffer = [f'buffer = "{settings.buffer}B"'] if settings.buffer else []
            alike.setdefault("\n".join([*buffer, *settings.lines()]), []).append(name)
        tables = [
            f"\n[[flow_control.mmu.role]]\nswitches = [{', '.join(f'{name!r}' for name in names)}]\n{lines}\n"
            for lines, names in alike.items()
        ]
        return "".join(tables)

    def settings(self, name: str, ports: Sequence[str]) -> Settings:
        """The settings of a switch: those of most of its linked ports. Errors name the switch."""
        tables = self.tables[self.pattern(name) or ""]
        try:
            settings, notes = sonic.settings_of(tables, self.rows, ports, self.sizes)
        except SonicError as error:
            raise SonicError(f"{name}: {error}") from None
        self.notes += [f"{name}: {note}" for note in notes]
        return settings


def _neighbours(name: str, tables: Mapping[str, Any]) -> Iterator[tuple[str, End]]:
    """By port, the node and port at the other end."""
    for port, of in tables.get("DEVICE_NEIGHBOR", {}).items():
        if isinstance(of, dict) and "name" in of:
            yield port, (str(of["name"]), str(of.get("port", "")))
    entries = dict(tables.get("LLDP_ENTRY_TABLE", {}))
    for key, of in tables.items():
        if key.startswith("LLDP_ENTRY_TABLE:"):
            entries[key.partition(":")[2]] = of.get("value", of)
    for port, of in entries.items():
        if port.startswith("Ethernet") and isinstance(of, dict):
            if "lldp_rem_sys_name" not in of:
                raise SonicError(f"{name}: LLDP_ENTRY_TABLE|{port}|lldp_rem_sys_name: is not there")
            yield port, (str(of["lldp_rem_sys_name"]), str(of.get("lldp_rem_port_id", "")))
    found = tables.get("lldp", {}).get("interface", [])
    for one in found if isinstance(found, list) else [found]:
        for port, of in one.items() if isinstance(one, dict) else ():
            chassis = of.get("chassis", {}) if isinstance(of, dict) else {}
            if port.startswith("Ethernet") and len(chassis) == 1:
                yield port, (str(next(iter(chassis))), str(of.get("port", {}).get("id", {}).get("value", "")))


def _words(topology: Path) -> Iterator[list[str]]:
    for line in topology.read_text(encoding="utf-8", errors="replace").splitlines():
        words = line.split("#")[0].split()
        if words:
            yield words


def _switches(topology: Path) -> list[str]:
    return [words[1] for words in _words(topology) if words[0] == "switch" and len(words) > 1]


def _nodes(topology: Path) -> list[str]:
    """Hosts and switches of a file of nodes and links, which the simulator reads and checks."""
    hosts = [name for words in _words(topology) if words[0] == "host" for name in words[1:]]
    return [*hosts, *_switches(topology)]
