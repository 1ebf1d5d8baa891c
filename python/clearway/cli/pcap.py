"""`clearway pcap`: what captures are read with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clearway import _core
from clearway.files.places import check_folder
from clearway.files.whole import replace


def pcap(
    dissector: Annotated[
        Path,
        typer.Option("--dissector", help="Write the dissector there, such as clearway.lua.", metavar="FILE"),
    ],
) -> None:
    """Write a dissector for Wireshark and tshark, in Lua, of captured packets: the headers of all schemes.

    `tshark -X lua_script:FILE -r out.pcapng` uses it once; in Wireshark's folder for Lua plugins it is always used.
    Packets are captured by `clearway run --pcap` and `clearway live --capture`.
    """
    if dissector.is_dir():
        raise IsADirectoryError(f"--dissector {dissector}: it is a folder; name a file in it, such as clearway.lua")
    check_folder(dissector.parent)
    text = _core.dissector().encode()
    if dissector.exists() and dissector.read_bytes()[:60] != text[:60]:
        raise FileExistsError(f"--dissector {dissector}: it is there and no dissector of ours; name another file")
    replace(dissector, lambda part: part.write_bytes(text))
    typer.echo(f"dissector: {dissector}")
