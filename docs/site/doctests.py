"""Examples in docstrings, as code: Markdown takes lines that begin with `>>>` for text."""

from __future__ import annotations

import re
from typing import Any

import griffe

# From a prompt to the next empty line.
_EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.M)


class Doctests(griffe.Extension):
    """Puts fences around the examples of every docstring."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """For each object, when it has been read."""
        if obj.docstring is not None:
            obj.docstring.value = _EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", obj.docstring.value)
