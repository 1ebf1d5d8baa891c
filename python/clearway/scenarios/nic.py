"""Parameters of RoCE NICs, as tools print them, as a scenario: `clearway import nic`.

Four kinds of lines are read, in any mixture:

- `grep . /sys/class/net/eth2/ecn/roce_{np,rp}/* /sys/class/net/eth2/ecn/roce_{np,rp}/enable/*`, a path and its value;
- `mlxconfig query` (and `mstconfig`), a name such as `RPG_AI_RATE_P1` and its value, by default of port 1;
- `mlnx_qos -i eth2`, of which the priorities with PFC are read;
- `NCCL_IB_TIMEOUT=20` and `NCCL_IB_RETRY_CNT=7`, the timeout and the retries of queue pairs.

A parameter that no part of the simulator stands for is named.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

BYTES_MAX = 16 << 20
"""Larger files are no listings of parameters."""

# Keys of `nvidia` in a scenario: numbers, and switches.
NUMBERS = (
    "dce_tcp_g",
    "dce_tcp_rtt",
    "initial_alpha_value",
    "rate_to_set_on_first_cnp",
    "rpg_min_dec_fac",
    "rpg_min_rate",
    "rpg_max_rate",
    "rpg_gd",
    "rate_reduce_monitor_period",
    "rpg_time_reset",
    "rpg_byte_reset",
    "rpg_threshold",
    "rpg_ai_rate",
    "rpg_hai_rate",
    "min_time_between_cnps",
)
SWITCHES = ("clamp_tgt_rate", "clamp_tgt_rate_after_time_inc")
# Parts of names of mlxconfig that are about congestion: those that are not read are named.
CONGESTION = ("ROCE_CC", "ROCE_RTT", "ROCE_ADAPTIVE", "CNP_", "RPG_", "DCE_TCP", "CLAMP_TGT", "USER_PROGRAMMABLE_CC")

SYSFS = re.compile(r"(?:\S*/)?(roce_[nr]p)/(\S+?)\s*[:=]\s*(\S+)")
MLXCONFIG = re.compile(r"\*?\s*([A-Z][A-Z0-9_]*?)(?:_P([1-4]))?\s{2,}(\S.*)")
NCCL = re.compile(r"(?:export\s+)?(NCCL_IB_[A-Z_]+)\s*=\s*(\S+)")
ENABLED = re.compile(r"\s*enabled((?:\s+[01]){8})\s*")


class NicError(ValueError):
    """A line that can't be read."""


@dataclass
class Imported:
    """A scenario, and what of the listings is not in it."""

    toml: str
    read: int
    notes: list[str]


@dataclass
class _Nic:
    """Parameters that lines have said so far."""

    nvidia: dict[str, str] = field(default_factory=dict)
    # By priority: whether the reaction point is on; empty if no line says.
    reacts: dict[int, bool] = field(default_factory=dict)
    pauses: list[int] | None = None
    cnp_priority: int | None = None
    timeout: int | None = None
    retries: int | None = None
    read: int = 0
    notes: list[str] = field(default_factory=list)


def read(files: Iterable[Path], port: int = 1) -> Imported:
    """Reads listings, of which later ones go before earlier ones.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> lines = ["/sys/class/net/eth2/ecn/roce_rp/rpg_ai_rate:10", "/sys/class/net/eth2/ecn/roce_np/cnp_dscp:48"]
    >>> _ = (folder / "nic.txt").write_text("\\n".join(lines))
    >>> found = read([folder / "nic.txt"])
    >>> "rpg_ai_rate = 10" in found.toml, found.read
    (True, 2)
    """
    nic = _Nic()
    for file in files:
        for number, line in _lines(file):
            _one(nic, f"{file}:{number}", line, port)
    if nic.read == 0:
        raise NicError(
            "no line is a parameter of RoCE; give the output of grep . /sys/class/net/*/ecn/roce_rp/*, of mlxconfig "
            "query or of mlnx_qos"
        )
    return Imported(_scenario(nic), nic.read, nic.notes)


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    with file.open("rb") as opened:
        content = opened.read(BYTES_MAX + 1)
    if len(content) > BYTES_MAX:
        raise NicError(f"{file}: has more than {BYTES_MAX >> 20} MB and is no listing of parameters")
    return iter(enumerate(content.decode("utf-8", "replace").splitlines(), 1))


def _one(nic: _Nic, place: str, line: str, port: int) -> None:
    if found := SYSFS.fullmatch(line.strip()):
        _sysfs(nic, place, *found.groups())
    elif found := NCCL.fullmatch(line.strip()):
        _nccl(nic, place, *found.groups())
    elif found := ENABLED.fullmatch(line):
        nic.pauses = [priority for priority, on in enumerate(found[1].split()) if on == "1"]
        nic.read += 1
    elif found := MLXCONFIG.fullmatch(line.rstrip()):
        name, of_port, values = found.groups()
        if of_port is None or int(of_port) == port:
            _mlxconfig(nic, place, name, _current(values))


def _current(values: str) -> str:
    """The value that counts now: the only one, or of default, current and next the second."""
    columns = re.split(r"\s{2,}", values.strip())
    return columns[1] if len(columns) == 3 else columns[0]


def _sysfs(nic: _Nic, place: str, role: str, key: str, value: str) -> None:
    nic.read += 1
    folder, _, priority = key.partition("/")
    if folder == "enable" and priority.isdecimal() and int(priority) < 8:
        if role == "roce_rp":
            nic.reacts[int(priority)] = _whole(place, value) != 0
    elif not _parameter(nic, place, key, value):
        nic.notes.append(f"{role}/{key}: is not modelled")


def _mlxconfig(nic: _Nic, place: str, name: str, value: str) -> None:
    if name == "ROCE_CC_PRIO_MASK":
        mask = _whole(place, value)
        nic.reacts = {priority: bool(mask >> priority & 1) for priority in range(8)}
    elif name == "ROCE_CC_ALGORITHM":
        if _whole(place, value) != 0:
            nic.notes.append(f"{name}: {value} is not modelled; DCQCN (ECN) is")
    elif not _parameter(nic, place, name.lower(), value):
        if any(name.startswith(part) for part in CONGESTION) and "DEVICE_DEFAULT" not in value:
            nic.notes.append(f"{name}: is not modelled")
        return
    nic.read += 1


def _parameter(nic: _Nic, place: str, key: str, value: str) -> bool:
    """Notes a parameter that both tools have under one name. Returns whether it is known."""
    if key in NUMBERS:
        nic.nvidia[key] = str(_whole(place, value))
    elif key in SWITCHES:
        nic.nvidia[key] = str(_whole(place, value) != 0).lower()
    elif key == "cnp_802p_prio":
        nic.cnp_priority = _whole(place, value)
        if nic.cnp_priority not in range(8):
            raise NicError(f"{place}: cnp_802p_prio: {value} is not 0 to 7")
    elif key == "cnp_dscp":
        dscp = _whole(place, value)
        nic.notes.append(f"cnp_dscp: {dscp} is not modelled in hosts; flow_control.mmu.maps.dscp says it to switches")
    else:
        return False
    return True


def _nccl(nic: _Nic, place: str, name: str, value: str) -> None:
    nic.read += 1
    if name == "NCCL_IB_TIMEOUT":
        nic.timeout = _whole(place, value)
    elif name == "NCCL_IB_RETRY_CNT":
        nic.retries = _whole(place, value)
    else:
        nic.notes.append(f"{name}: is not modelled")


def _whole(place: str, value: str) -> int:
    """A number, which mlxconfig may write behind its name: True(1)."""
    inner = re.fullmatch(r"[^()\s]*\((-?\w+)\)", value)
    text = inner[1] if inner else value
    try:
        number = int(text, 0)
    except ValueError:
        raise NicError(f"{place}: {value!r} is not a whole number") from None
    if number < 0:
        raise NicError(f"{place}: {value!r} is below 0")
    return number


def _scenario(nic: _Nic) -> str:
    pauses = [3] if nic.pauses is None else nic.pauses
    data = next((priority for priority in pauses if nic.reacts.get(priority, True)), pauses[0] if pauses else 3)
    if len(pauses) > 1:
        nic.notes.append(f"PFC: of priorities {pauses}, data goes in {data}; set class of other traffic")
    name = "dcqcn" if nic.reacts.get(data, True) else "rdma"
    if name == "rdma":
        nic.notes.append(f"roce_rp/enable/{data}: DCQCN is off, so the rate control is not in the scenario")
    lines = [
        '# A NIC as its tools print it, written by "clearway import nic". The traffic and the fabric are an example.',
        'fabric.star = { hosts = 9, rate = "100Gbps" }',
        'switch.buffer = { shared = { bytes = "16MB" } }',
        f"flow_control.pfc.classes = {pauses}" if pauses else "# PFC is on for no priority.",
        "\n[[traffic]]",
        'name = "incast"\nsizes.constant = "1MB"\narrivals = "all_at_once"\nreceivers = "0"',
        "pattern.incast.degree = 8\nflows = 8",
        f"\n[transport.{name}]",
        f"class = {data}",
        'window = "unlimited"',
    ]
    if nic.cnp_priority == data:
        lines.append(f"cnp_class = {data}")
    elif nic.cnp_priority is not None:
        lines.append(f"cnp_class = 0 # priority {nic.cnp_priority}; class 0 goes first")
    recovery = {"ack_timeout": nic.timeout, "retry_cnt": nic.retries}
    if any(value is not None for value in recovery.values()):
        lines.append(f"\n[transport.{name}.recovery.go_back_n]")
        lines += [f"{key} = {value}" for key, value in recovery.items() if value is not None]
    if name == "dcqcn":
        lines.append("\n[transport.dcqcn.control.nvidia]")
        lines += [f"{key} = {nic.nvidia[key]}" for key in (*NUMBERS, *SWITCHES) if key in nic.nvidia]
    return "\n".join(lines) + "\n"
