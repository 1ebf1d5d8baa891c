"""The words of reports and the looks of their charts: `report_spec.toml`, which the playground's page is made of,
too."""

from __future__ import annotations

import sys
from importlib.resources import files
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SPEC: dict[str, Any] = tomllib.loads(files("clearway.reports").joinpath("report_spec.toml").read_text(encoding="utf-8"))
SAID: dict[str, str] = SPEC["said"]
"""Sentences below charts and tables."""
TABLES: dict[str, list[str]] = SPEC["tables"]
"""Headings of tables."""
