"""Charts as Bokeh's models in plain data, which Bokeh's script draws in a page.

Bokeh's own Python package takes 0.3 s to import and some 40 ms a chart, most of it to check each property and to look
for its default: more than many a run. A page needs only what differs from the defaults of Bokeh's script. A test reads
pages with Bokeh's package, which knows the kinds of all properties.
"""

from __future__ import annotations

import base64
import gzip
import math
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np


class Model:
    """One of Bokeh's models: its kind, and the properties that are set, which are attributes."""

    def __init__(self, kind: str, **properties: Any) -> None:
        self.__dict__.update(kind=kind, properties=properties)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["properties"][name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        self.properties[name] = value


def source(data: Mapping[str, Any], name: str | None = None) -> Model:
    """Columns of one length, under a name by which a page's script finds them."""
    columns = {column: values if isinstance(values, list) else np.asarray(values) for column, values in data.items()}
    return Model("ColumnDataSource", data=columns, **({"name": name} if name else {}))


def view(indices: Sequence[int], name: str | None = None) -> Model:
    """Some rows of a source; the filter has the name."""
    rows = Model("IndexFilter", indices=list(indices), **({"name": name} if name else {}))
    return Model("CDSView", filter=rows)


def span(location: float, dimension: str, color: str, dash: str) -> Model:
    """A line across a chart: its height at a place of the x axis, or its width."""
    return Model("Span", location=location, dimension=dimension, line_color=color, line_dash=dash)


def hover(drawn: Sequence[Model], said: Sequence[tuple[str, str]], **more: Any) -> Model:
    """A tool that says something of the point under the pointer."""
    return Model("HoverTool", renderers=list(drawn), tooltips=list(said), **more)


def ticks(places: Sequence[float]) -> Model:
    """Ticks at these places."""
    return Model("FixedTicker", ticks=list(places), minor_ticks=[])


def words(code: str) -> Model:
    """Labels of ticks by the body of a function in JavaScript."""
    return Model("CustomJSTickFormatter", code=code)


def _range(of: Any) -> Model:
    """A range: given, two ends, names, or where the data are."""
    if isinstance(of, Model):
        return of
    if of is None:
        return Model("DataRange1d")
    if isinstance(of[0], str | tuple):
        return Model("FactorRange", factors=list(of))
    return Model("Range1d", start=of[0], end=of[1])


# Of each glyph that is drawn here: the properties that may have a value a row, where it is, and how it looks.
_LINE, _AREA = ("line",), ("line", "fill", "hatch")
_PLACES = ("x", "y", "xs", "ys", "x0", "y0", "x1", "y1", "left", "right", "top", "bottom")
_LOOKS = {
    "Line": (), "Step": (), "MultiLine": _LINE, "Segment": _LINE, "Scatter": _AREA, "HBar": _AREA, "VBar": _AREA,
    "Patches": _AREA,
}  # fmt: skip
_KINDS = ("color", "alpha", "width", "dash")


class Chart(Model):
    """A chart: Bokeh's figure."""

    def __init__(
        self,
        title: str,
        x_axis_label: str,
        y_axis_label: str,
        x_axis_type: str = "linear",
        y_axis_type: str = "linear",
        x_range: Any = None,
        y_range: Any = None,
        **how: Any,
    ) -> None:
        ranges = [_range(x_range), _range(y_range)]
        kinds = [
            "Categorical" if of.kind == "FactorRange" else kind.capitalize()
            for of, kind in zip(ranges, (x_axis_type, y_axis_type))
        ]
        axes = [Model(f"{kind}Axis", axis_label=label) for kind, label in zip(kinds, (x_axis_label, y_axis_label))]
        grids = [Model("Grid", dimension=place, axis=axis) for place, axis in enumerate(axes)]
        tools = [
            Model("PanTool"),
            Model("WheelZoomTool", renderers="auto"),
            Model("BoxZoomTool", dimensions="both"),
            Model("ResetTool"),
            Model("SaveTool"),
        ]
        super().__init__(
            "Figure",
            x_range=ranges[0],
            y_range=ranges[1],
            x_scale=Model(f"{kinds[0]}Scale"),
            y_scale=Model(f"{kinds[1]}Scale"),
            title=Model("Title", text=title),
            toolbar=Model("Toolbar", tools=tools, active_scroll=None),
            renderers=[],
            below=[axes[0]],
            left=[axes[1]],
            center=grids,
            **how,
        )

    @property
    def xaxis(self) -> Model:
        """The horizontal axis."""
        axis: Model = self.below[0]
        return axis

    @property
    def yaxis(self) -> Model:
        """The vertical axis."""
        axis: Model = self.left[0]
        return axis

    @property
    def grids(self) -> list[Model]:
        """The lines at the ticks of the horizontal and of the vertical axis."""
        return [one for one in self.center if one.kind == "Grid"]

    @property
    def legend(self) -> Model | None:
        """The names of what is drawn, once there are some."""
        return next((one for one in self.below if one.kind == "Legend"), None)

    def add_tools(self, *tools: Model) -> None:
        """Adds what a reader can do with the chart."""
        self.toolbar.tools.extend(tools)

    def add_span(self, one: Model) -> None:
        """Adds a line across the chart."""
        self.center.append(one)

    def draw(self, kind: str, of: Model, rows: Model | None = None, name: str | None = None, **how: Any) -> Model:
        """Draws a glyph for each of these rows of a source. A text that is a column's name stands for the column.
        `color` and `alpha` are of lines and areas; those with `selection_` or `nonselection_` before them hold once a
        point is chosen.
        """
        states: dict[str, dict[str, Any]] = {"": {}, "nonselection_": {}, "selection_": {}}
        for key, value in how.items():
            state = next((state for state in ("nonselection_", "selection_") if key.startswith(state)), "")
            states[state][key.removeprefix(state)] = value
        plain = _visuals(kind, states[""])
        glyphs = {
            "glyph": plain,
            "nonselection_glyph": {**plain, **_visuals(kind, {"alpha": 0.1, **states["nonselection_"]})},
            "muted_glyph": {**plain, **_visuals(kind, {"alpha": 0.2})},
        }
        if states["selection_"]:
            glyphs["selection_glyph"] = {**plain, **_visuals(kind, states["selection_"])}
        drawn = Model(
            "GlyphRenderer",
            data_source=of,
            view=rows or Model("CDSView", filter=Model("AllIndices")),
            **{place: Model(kind, **_specs(kind, set_, of)) for place, set_ in glyphs.items()},
            **({"name": name} if name is not None else {}),
        )
        self.renderers.append(drawn)
        return drawn

    def stack(self, columns: Sequence[str], colours: Sequence[str], of: Model, y: str, height: float) -> list[Model]:
        """Draws one bar for each row, with the values of these columns one behind the other."""
        sums = [_Sum(Model("Stack", fields=list(columns[:count]))) for count in range(len(columns) + 1)]
        return [
            self.draw("HBar", of, name=column, y=y, height=height, left=left, right=right, color=colour)
            for column, colour, left, right in zip(columns, colours, sums, sums[1:])
        ]


class _Sum:
    """A sum of columns in the place of one."""

    def __init__(self, of: Model) -> None:
        self.of = of


def _visuals(kind: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """With `color` and `alpha` as those of the glyph's lines and areas, unless these are given, too."""
    looks = _LOOKS[kind] or _LINE
    both = {f"{look}_{what}": given[what] for what in ("color", "alpha") if what in given for look in looks}
    return both | {key: value for key, value in given.items() if key not in ("color", "alpha")}


def _specs(kind: str, given: Mapping[str, Any], of: Model) -> dict[str, Any]:
    """The properties, with columns and values told apart where a property may have either."""
    by_row = {f"{look}_{what}" for look in _LOOKS[kind] for what in _KINDS} | {"size", "marker", "width", "height"}
    found: dict[str, Any] = {}
    for key, value in given.items():
        if isinstance(value, _Sum):
            found[key] = {"type": "expr", "expr": value.of}
        elif key in _PLACES or (key in by_row and isinstance(value, str) and value in of.data):
            found[key] = {"type": "field", "field": value}
        else:
            found[key] = {"type": "value", "value": value} if key in by_row else value
    return found


class _Writer:
    """Writes models as Bokeh's script reads them: each once, and by its number after that."""

    def __init__(self) -> None:
        self._known: dict[int, str] = {}

    def write(self, value: Any) -> Any:
        if isinstance(value, Model):
            return self._model(value)
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, dict) and "type" not in value:
            return {"type": "map", "entries": [[self.write(key), self.write(of)] for key, of in value.items()]}
        if isinstance(value, dict):
            return {key: self.write(of) for key, of in value.items()}
        if isinstance(value, list | tuple):
            return [self.write(one) for one in value]
        if isinstance(value, float | np.floating) and not math.isfinite(value):
            named = "nan" if math.isnan(value) else "+inf" if value > 0 else "-inf"
            return {"type": "number", "value": named}
        return value.item() if isinstance(value, np.generic) else value

    def _model(self, model: Model) -> dict[str, Any]:
        known = self._known.get(id(model))
        if known is not None:
            return {"id": known}
        number = self._known[id(model)] = f"c{len(self._known)}"
        properties = {name: self.write(value) for name, value in model.properties.items()}
        return {"type": "object", "name": model.kind, "id": number, "attributes": properties}

    def _array(self, values: np.ndarray[Any, Any]) -> Any:
        if values.dtype.kind == "b":
            values = values.astype("uint8")
        if values.dtype.kind in "iu" and values.dtype.itemsize == 8:
            # The script has no integers of 64 bits; a double has all that count here.
            fits = not len(values) or (int(values.min()) >= -(1 << 31) and int(values.max()) < 1 << 31)
            values = values.astype("int32" if fits else "float64")
        if values.dtype.kind not in "iuf":
            return {"type": "ndarray", "array": self.write(values.tolist()), "shape": list(values.shape),
                    "dtype": "object", "order": sys.byteorder}  # fmt: skip
        packed = gzip.compress(np.ascontiguousarray(values).tobytes(), mtime=0)
        array = {"type": "bytes", "data": base64.b64encode(packed).decode("ascii")}
        return {"type": "ndarray", "array": array, "shape": list(values.shape), "dtype": values.dtype.name,
                "order": sys.byteorder}  # fmt: skip


def document(charts: Sequence[Model]) -> tuple[dict[str, Any], list[str]]:
    """The charts as a document that Bokeh's script reads, and their numbers there."""
    writer = _Writer()
    roots = [writer.write(chart) for chart in charts]
    return {"title": "", "roots": roots}, [root["id"] for root in roots]


@cache
def script() -> str:
    """Bokeh's script: its core, which draws charts."""
    found = find_spec("bokeh")
    assert found is not None and found.submodule_search_locations
    place = Path(found.submodule_search_locations[0]) / "server/static/js/bokeh.min.js"
    return place.read_text(encoding="utf-8")
