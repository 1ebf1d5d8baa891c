"""Reads the two captures of `clearway against kernel --capture`: when each flow's bytes left on which link.

`python tests/kernel_trace.py trace.here.pcapng trace.there.pcapng` prints, for both, packets of each flow by time.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ETHERNET, STEP_S = 14, 0.02


@dataclass(frozen=True)
class Sent:
    """A packet with content that has left on a link."""

    at_s: float
    link: str
    flow: tuple[str, str, int]
    """Its hosts' addresses, and the port that it comes from."""
    bytes: int
    marked: bool
    lost: bool


def packets(file: Path) -> Iterator[Sent]:
    """The packets with content of a capture (pcapng, draft-ietf-opsawg-pcapng), TCP's or those of a transport here."""
    raw, links = file.read_bytes(), []
    at = 0
    while at + 12 <= len(raw):
        kind, length = struct.unpack_from("=II", raw, at)
        block = raw[at + 8 : at + length - 4]
        at += length
        if kind == 1:
            links.append(_name(block[8:]))
        elif kind == 6:
            which, high, low, captured, whole = struct.unpack_from("=IIIII", block)
            comment = _options(block[20 + captured + (-captured) % 4 :]).get(1, b"")
            found = _packet(block[20 : 20 + captured], whole)
            if found is not None:
                flow, size, marked = found
                time_s = ((high << 32) + low) / 1e9
                yield Sent(time_s, links[which], flow, size, marked, comment.startswith(b"lost"))


def _options(raw: bytes) -> dict[int, bytes]:
    found, at = {}, 0
    while at + 4 <= len(raw):
        code, length = struct.unpack_from("=HH", raw, at)
        if code == 0:
            break
        found[code] = raw[at + 4 : at + 4 + length]
        at += 4 + length + (-length) % 4
    return found


def _name(block: bytes) -> str:
    return _options(block).get(2, b"").decode()


def _packet(frame: bytes, whole: int) -> tuple[tuple[str, str, int], int, bool] | None:
    ip = frame[ETHERNET:]
    if len(ip) < 28 or ip[0] >> 4 != 4:
        return None
    ends = ".".join(map(str, ip[12:16])), ".".join(map(str, ip[16:20]))
    head = 4 * (ip[0] & 15)
    port = int.from_bytes(ip[head : head + 2], "big")
    if ip[9] == 6:
        content = int.from_bytes(ip[2:4], "big") - head - 4 * (ip[head + 12] >> 4)
    else:
        content = whole - ETHERNET - head - 8 - 32
    return ((*ends, port), content, ip[1] & 3 == 3) if content > 0 else None


def draw(here: Path, there: Path, picture: Path) -> None:
    """The bytes of each flow that have left on the captured link, by time, in both captures; marks and losses."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"font.size": 8}):
        figure = Figure(figsize=(9.6, 3.6), layout="constrained")
        both = figure.subplots(1, 2, sharex=True, sharey=True)
        for axes, (file, title) in zip(both, ((there, "kernel"), (here, "here")), strict=True):
            of: dict[tuple[str, str, int], list[Sent]] = {}
            for one in packets(file):
                of.setdefault(one.flow, []).append(one)
            began = min((sent[0].at_s for sent in of.values()), default=0.0)
            for number, (_, sent) in enumerate(sorted(of.items())):
                times, total, have = [], [], 0
                for one in sent:
                    have += 0 if one.lost else one.bytes
                    times.append(one.at_s - began)
                    total.append(have / 1e6)
                axes.plot(times, total, color=f"C{number}", label=f"flow {number}")
                for way, colour in (("marked", "#c98500"), ("lost", "#c0392b")):
                    at = [place for place, one in enumerate(sent) if getattr(one, way)]
                    axes.plot([times[i] for i in at], [total[i] for i in at], "|", color=colour, markersize=5)
            axes.set(title=title, xlabel="s", ylabel="MB")
        both[0].legend()
        figure.savefig(picture, dpi=110)


def main(files: list[str]) -> int:
    """Prints, of each flow on each link, how many packets left in each 20 ms, and how many of them were marked."""
    for file in files:
        print(file)
        of: dict[tuple[str, tuple[str, str, int]], list[Sent]] = {}
        for one in packets(Path(file)):
            of.setdefault((one.link, one.flow), []).append(one)
        for (link, flow), sent in sorted(of.items()):
            marked, lost = (sum(getattr(one, way) for one in sent) for way in ("marked", "lost"))
            print(f"  {link} {flow}: {len(sent)} packets, {marked} marked, {lost} lost")
            bins: dict[int, list[Sent]] = {}
            for one in sent:
                bins.setdefault(int((one.at_s - sent[0].at_s) / STEP_S), []).append(one)
            line = []
            for number in range(min(max(bins) + 1, 100)):
                within = bins.get(number, [])
                marks = sum(one.marked for one in within)
                line.append(f"{len(within)}{f'm{marks}' if marks else ''}")
            print("   ", " ".join(line))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
