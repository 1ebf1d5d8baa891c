"""`clearway run --pcap`: what links of a simulation carry, as files in the format pcapng."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from clearway.files.places import check_folder
from clearway.files.whole import replace

PACKETS = 1 << 20
"""Most packets of a file, unless another number is given."""


def places(option: str, given: Sequence[str] | None) -> dict[str, str]:
    """Files by link, of words such as "spine0-leaf2:out.pcapng"."""
    return pairs(option, given, ":", "spine0-leaf2:out.pcapng")


def pairs(option: str, given: Sequence[str] | None, between: str, example: str) -> dict[str, str]:
    """Values by name, of an option's words."""
    found: dict[str, str] = {}
    for text in given or ():
        name, middle, value = text.partition(between)
        if not (name and middle and value):
            raise ValueError(f"{option} {text!r}: it is not as in {example}")
        if name in found:
            raise ValueError(f"{option} {text!r}: {name} is given as {found[name]} already; give each once")
        found[name] = value
    return found


def check(pcap: Mapping[str, str | Path] | None, level: str, packets: int) -> dict[str, str]:
    """Checks the requested captures before anything is simulated."""
    files = {link: str(file) for link, file in (pcap or {}).items()}
    if files and level != "packet":
        why = "flow level has no packets to capture" if level == "flow" else "each link has packets of its own"
        raise ValueError(f"pcap={files}: {why}; run it at packet level")
    if packets < 1:
        raise ValueError(f"pcap_packets={packets}: must be at least 1")
    for link, file in files.items():
        if Path(file).is_dir():
            raise IsADirectoryError(
                f"pcap {link}: {file} is a folder; name a file, such as {Path(file) / 'out.pcapng'}"
            )
        check_folder(Path(file).parent)
    return files


def write(files: Mapping[str, str], contents: Sequence[tuple[bytes, bool]], packets: int) -> list[str]:
    """Writes the files, each whole or not at all; returns the facts that their readers need. The engine has them in the
    order of the links' names.
    """
    notes = []
    for (link, file), (content, is_cut_off) in zip(sorted(files.items()), contents):
        replace(Path(file), partial(Path.write_bytes, data=content))
        if is_cut_off:
            notes.append(
                f"pcap {link}: only the first {packets:,} packets are in {file}; end the run earlier, "
                "with measure.end, or allow more with --pcap-packets"
            )
    return notes
