"""The settings of a scenario's schemes that are not their defaults."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from clearway import _core
from clearway.scenarios.scenario import _transports

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_PLAIN = "fabric.star.hosts = 2\n[[traffic]]\nsizes.constant = '1KB'\narrivals = 'all_at_once'\n"


def changed(read: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, str]]]:
    """Each scheme of a scenario with every default filled in, and those of its settings that were set otherwise: by
    dotted key, the value as TOML has it.

    >>> import clearway as cw
    >>> s = cw.Scenario.load("examples/tiny.toml").with_(transport={"dcpim": {"rounds": 3}})
    >>> list(changed(s.to_dict()))
    [('dcpim', {'rounds': '3'})]
    """
    seen = []
    for key, value in (*_transports(read), ("flow_control", read.get("flow_control"))):
        if not isinstance(value, Mapping) or value in seen:
            continue
        seen.append(value)
        [(name, settings)] = value.items()
        usual = _default("flow_control" if key == "flow_control" else "transport", str(name))
        yield str(name), dict(_differing(settings, usual))


@functools.cache
def _default(kind: str, name: str) -> Mapping[str, Any]:
    """A scheme's settings by default; none where it has no defaults, or is of a crate outside."""
    try:
        text = _core.Scenario.parse(f'{kind} = "{name}"\n{_PLAIN}', "default", ".", []).to_toml()
    except ValueError:
        return {}
    found: Any = tomllib.loads(text).get(kind, {})
    settings = found.get(name, {}) if isinstance(found, Mapping) else {}
    return settings if isinstance(settings, Mapping) else {}


def _differing(settings: Any, usual: Any, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(settings, Mapping):
        usual = usual if isinstance(usual, Mapping) else {}
        for name, value in settings.items():
            yield from _differing(value, usual.get(name), f"{key}.{name}" if key else str(name))
    elif settings != usual:
        yield key, json.dumps(settings)
