"""The content of a checkpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from clearway import _core
from clearway.programs import outside
from clearway.scenarios.scenario import Scenario


def inspect(
    checkpoint: str | Path, what: str | None = None, *, flow: int | None = None, folder: str | Path = "."
) -> dict[str, Any]:
    """The state of a node, a port or a flow in a checkpoint that `cw.run` has written, as a tree.

    `what`: a node, such as "host3", or a port of a switch, such as "spine0:3"; without it and `flow`, how far the whole
    network has come. `folder`: where the files are that the scenario names. Values with a unit are texts ("1.5us").
    The names of fields are those of the code, and may change with it.

    >>> import clearway as cw, tempfile
    >>> file = Path(tempfile.mkdtemp()) / "tiny.checkpoint"
    >>> whole = cw.run("examples/tiny.toml", checkpoint="3us", checkpoint_file=file)
    >>> cw.run("examples/tiny.toml", resume=file).digest == whole.digest
    True
    >>> inspect(file)["time"]
    '3us'
    """
    toml, _ = _core.checkpoint_of(checkpoint)
    scenario = Scenario.from_toml(toml, str(checkpoint), folder)
    core = outside.native(scenario._core, "checkpoints")
    tree: dict[str, Any] = json.loads(_core.inspect(core, checkpoint, what, flow))
    return tree
