"""The layout of a fabric in pictures: tiers above their hosts, grids as grids, anything else on a ring."""

from __future__ import annotations

import math
import re
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from clearway._results import Result

WIDTH, HEIGHT = 600, 330
LEFT, RIGHT, TOP, BOTTOM = 52, 8, 22, 14

Point = tuple[float, float]


@dataclass
class Layout:
    """A fabric on a plane of WIDTH by HEIGHT."""

    names: list[str]
    # By link: the indices of its ends in `names`.
    ends: list[tuple[int, int]]
    # By link: its sender's half, from the port to the middle of the cable.
    halves: npt.NDArray[np.float64]
    # Nodes: centre, width, height.
    boxes: list[tuple[float, float, float, float]]
    labels: list[tuple[float, float, str]] = field(default_factory=list)
    # Size of marks, as a share of their size where there is room.
    scale: float = 1.0


def lay_out(result: Result) -> Layout:
    """The layout of the fabric that a result's links belong to."""
    links = result.links
    tiers, ends_by_name = links["tier"], list(zip(links["from"], links["to"]))
    hosts = [source for (source, _), tier in zip(ends_by_name, tiers) if tier == "from_host"]
    switches = sorted({name for ends in ends_by_name for name in ends} - set(hosts), key=_natural)
    names = [*hosts, *switches]
    place = {name: index for index, name in enumerate(names)}
    ends = [(place[source], place[target]) for source, target in ends_by_name]
    home = {source: target for source, target in ends if source < len(hosts)}
    layout = Layout(names, ends, np.zeros((len(ends), 4)), [])
    level = _levels(len(names), home, ends)
    grid = _dims(result, len(switches))
    if grid:
        _grid(layout, len(hosts), home, grid)
    elif max(level[len(hosts) :], default=1) == 1 and len(switches) > 4:
        _ring(layout, len(hosts), home)
    else:
        _tiers(layout, len(hosts), home, level)
    return layout


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part or 0), word) for word, part in re.findall(r"(\D*)(\d*)", name)]


def _dims(result: Result, switches: int) -> list[int]:
    """The lengths of a torus or mesh."""
    fabric = tomllib.loads(result.scenario_toml).get("fabric", {})
    dims: list[Any] = next((spec["dims"] for kind, spec in fabric.items() if kind in ("torus", "mesh")), [])
    return [int(length) for length in dims] if math.prod(dims) == switches and dims else []


def _levels(nodes: int, home: dict[int, int], ends: list[tuple[int, int]]) -> list[int]:
    """Hops to the nearest host."""
    near: list[list[int]] = [[] for _ in range(nodes)]
    for source, target in ends:
        near[source].append(target)
    level = [0 if node in home else -1 for node in range(nodes)]
    front = list(home)
    while front:
        reached = [target for node in front for target in near[node] if level[target] < 0]
        for node in front:
            for target in near[node]:
                if level[target] < 0:
                    level[target] = level[node] + 1
        front = list(dict.fromkeys(reached))
    return [max(0, hops) for hops in level]


def _tiers(layout: Layout, hosts: int, home: dict[int, int], level: list[int]) -> None:
    names, top = layout.names, max(level)
    switches = range(hosts, len(names))
    racks = [node for node in switches if level[node] == 1]
    of_rack = {rack: [host for host in range(hosts) if home[host] == rack] for rack in racks}
    pitch = (WIDTH - LEFT - RIGHT) / (hosts + 1.6 * len(racks))
    y_of = [HEIGHT - BOTTOM - 4.0, HEIGHT - BOTTOM - 84.0]
    y_of += [y_of[1] + (TOP - y_of[1]) * step / max(1, top - 1) for step in range(1, top)]
    centre: dict[int, Point] = {}
    width = [min(7.0, 0.66 * pitch)] * hosts + [0.0] * len(switches)
    x = LEFT + 0.8 * pitch
    for rack in racks:
        first = x
        for host in of_rack[rack]:
            centre[host] = x + pitch / 2, y_of[0]
            x += pitch
        x = max(x, first + 2 * pitch)
        centre[rack], width[rack] = ((first + x) / 2, y_of[1]), x - first
        x += 1.6 * pitch
    for tier in range(2, top + 1):
        of_tier = [node for node in switches if level[node] == tier]
        below = {n: [centre[t][0] for s, t in layout.ends if s == n and level[t] == tier - 1] for n in of_tier}
        of_tier.sort(key=lambda node: (round(sum(below[node]) / len(below[node]), 3), node))
        step = (WIDTH - LEFT - RIGHT) / len(of_tier)
        for index, node in enumerate(of_tier):
            centre[node], width[node] = (LEFT + step * (index + 0.5), y_of[tier]), min(64.0, 0.72 * step)
    height = [width[node] if node < hosts else 11.0 for node in range(len(names))]
    layout.boxes = [(*centre[node], width[node], height[node]) for node in range(len(names))]
    ports = _ports(layout, hosts, level, centre, width, height)
    _join(layout, ports)
    for tier in range(top + 1):
        some = next((name for name, at in zip(names, level) if at == tier), "")
        layout.labels.append((2, y_of[tier] + 4, re.sub(r"[\d.:_-]+$", "", some) or some))


def _ports(
    layout: Layout, hosts: int, level: list[int], centre: dict[int, Point], width: list[float], height: list[float]
) -> dict[int, Point]:
    """By link: where it leaves its sender's box, spread along the edge in the order of the links' destinations."""
    sides: dict[tuple[int, int], list[int]] = {}
    for link, (source, target) in enumerate(layout.ends):
        sides.setdefault((source, int(np.sign(level[target] - level[source]))), []).append(link)
    ports = {}
    for (node, side), links in sides.items():
        x, y = centre[node]
        links.sort(key=lambda link: (centre[layout.ends[link][1]][0], link))
        for index, link in enumerate(links):
            target = layout.ends[link][1]
            if side == 0:
                ports[link] = x + math.copysign(width[node] / 2, centre[target][0] - x), y
            elif target < hosts or node < hosts:
                ports[link] = centre[min(node, target)][0], y - side * height[node] / 2
            else:
                ports[link] = x + width[node] * 0.84 * ((index + 0.5) / len(links) - 0.5), y - side * height[node] / 2
    return ports


def _join(layout: Layout, ports: dict[int, Point]) -> None:
    """Two halves from port to port: a cable is two consecutive links."""
    for link, (x, y) in ports.items():
        to_x, to_y = ports[link ^ 1]
        layout.halves[link] = x, y, (x + to_x) / 2, (y + to_y) / 2


def _grid(layout: Layout, hosts: int, home: dict[int, int], dims: list[int]) -> None:
    """Planes of the first two dimensions side by side.

    A link that wraps around or leads to another plane is a stub at each end.
    """
    columns, rows = dims[0], dims[1] if len(dims) > 1 else 1
    planes = math.prod(dims) // (columns * rows)

    def cell_of(across: int) -> float:
        down = math.ceil(planes / across)
        return min((WIDTH - 8) / (across * (columns + 1)), (HEIGHT - 8) / (down * (rows + 1)))

    across = max(range(1, planes + 1), key=cell_of)
    cell = min(cell_of(across), 90.0)
    shift_x = (WIDTH - cell * across * (columns + 1)) / 2
    shift_y = (HEIGHT - cell * math.ceil(planes / across) * (rows + 1)) / 2

    def at(switch: int) -> Point:
        plane, column, row = switch // (columns * rows), switch % columns, switch // columns % rows
        x = shift_x + cell * (plane % across * (columns + 1) + column + 1)
        return x, shift_y + cell * (plane // across * (rows + 1) + row + 1)

    size = 0.34 * cell
    layout.scale = min(1.0, cell / 40)
    hosts_at: dict[int, int] = {}
    centre: list[Point] = []
    for host in range(hosts):
        nth = hosts_at.setdefault(home[host], 0)
        hosts_at[home[host]] += 1
        x, y = at(home[host] - hosts)
        centre.append((x + 0.42 * cell - 0.16 * cell * nth, y + 0.42 * cell))
    centre += [at(switch) for switch in range(math.prod(dims))]
    layout.boxes = [(*point, *((size / 2,) * 2 if node < hosts else (size,) * 2)) for node, point in enumerate(centre)]
    strides = [math.prod(dims[:axis]) for axis in range(len(dims))]
    diagonals = ((0, 0), (0, 0), (1, -1), (-1, -1), (0.45, -1.1), (-1.1, 0.45))
    for link, (source, target) in enumerate(layout.ends):
        (x, y), (to_x, to_y) = centre[source], centre[target]
        if min(source, target) >= hosts:
            one, other = source - hosts, target - hosts
            steps = [(other // s % d) - (one // s % d) for s, d in zip(strides, dims)]
            axis = next(axis for axis, step in enumerate(steps) if step)
            ahead = 1 if (steps[axis] > 0) == (abs(steps[axis]) == 1) else -1
            if axis > 1:
                to_x, to_y = x + ahead * diagonals[axis][0] * cell * 0.7, y + ahead * diagonals[axis][1] * cell * 0.7
            elif abs(steps[axis]) > 1:
                to_x, to_y = (x + ahead * cell, y) if axis == 0 else (x, y + ahead * cell)
        reach = math.hypot(to_x - x, to_y - y) or 1.0
        begin = (size if source >= hosts else size / 2) / 2 / reach
        layout.halves[link] = (
            x + (to_x - x) * begin,
            y + (to_y - y) * begin,
            (x + to_x) / 2,
            (y + to_y) / 2,
        )


def _ring(layout: Layout, hosts: int, home: dict[int, int]) -> None:
    """Switches on a circle, with their hosts outside it."""
    switches = len(layout.names) - hosts
    radius = HEIGHT / 2 - 46

    def at(turn: float, far: float) -> Point:
        return WIDTH / 2 + far * math.sin(2 * math.pi * turn), HEIGHT / 2 - far * math.cos(2 * math.pi * turn)

    centre = []
    for host in range(hosts):
        fellows = [other for other in range(hosts) if home[other] == home[host]]
        spread = 0.7 * ((fellows.index(host) + 0.5) / len(fellows) - 0.5)
        centre.append(at((home[host] - hosts + spread) / switches, radius + 34))
    centre += [at(switch / switches, radius) for switch in range(switches)]
    size = min(12.0, 4 * radius / switches)
    layout.boxes = [(*point, *((size / 2,) * 2 if node < hosts else (size,) * 2)) for node, point in enumerate(centre)]
    _join(layout, {link: centre[source] for link, (source, _) in enumerate(layout.ends)})
