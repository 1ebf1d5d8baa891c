// Charts by Bokeh, as `reports/charts.py` makes them: readers point at them, zoom, and hide lines by the legend. The
// spec defines each chart. All names are data, and Bokeh shows them as text.
import { SPEC, TICKS } from "spec";
import { evenly } from "./columns.js";

const { ink: INK, grid: GRID, dashes: DASHES, markers: MARKERS } = SPEC.looks;
// Markers of a line of many points.
const SIGNS = 10;

export const markerOf = ([, , marker]) => MARKERS[marker];

// The empty chart of this name in the spec, `filled` in its title.
export function chartOf(name, filled = "", { height = 280, ...more } = {}) {
  const { title, x, y, how = {}, ticks = {} } = SPEC.charts[name];
  const chart = Bokeh.Plotting.figure({
    title: title.replace("{}", filled), x_axis_label: x, y_axis_label: y, height, sizing_mode: "stretch_width",
    tools: "pan,wheel_zoom,box_zoom,reset,save", active_scroll: null, toolbar_location: "above", ...how, ...more,
    // A finger that moves over a chart scrolls the page.
    ...(matchMedia("(pointer: coarse)").matches ? { active_drag: null } : {}),
  });
  Object.assign(chart.toolbar, { logo: null, autohide: true });
  Object.assign(chart, { background_fill_color: null, border_fill_color: null, outline_line_color: null });
  chart.title.text_color = INK;
  for (const axis of [...chart.left, ...chart.below].filter((one) => one instanceof Bokeh.Axis)) dress(axis);
  for (const [axis, text] of Object.entries(ticks)) {
    const [one] = chart[axis === "x" ? "below" : "left"].filter((of) => of instanceof Bokeh.Axis);
    one.formatter = new Bokeh.BasicTickFormatter();
    one.formatter.doFormat = (values) => values.map(TICKS[text]);
  }
  for (const grid of chart.center.filter((one) => one instanceof Bokeh.Grid)) grid.grid_line_color = GRID;
  return chart;
}

function dress(axis) {
  if (axis instanceof Bokeh.LogAxis) axis.ticker = new Bokeh.LogTicker({ mantissas: [1, 2, 5] });
  for (const part of ["axis_label_text", "major_label_text", "axis_line", "major_tick_line"]) axis[`${part}_color`] = INK;
  axis.minor_tick_line_color = null;
  axis.axis_label_text_font_style = "normal";
}

export const axisOf = (chart, side) => chart[side].find((one) => one instanceof Bokeh.Axis);
export const sourceOf = (data, name = null) => new Bokeh.ColumnDataSource({ data, name });
export const only = (indices, name = null) => (
  new Bokeh.CDSView({ filter: new Bokeh.IndexFilter({ indices, name }) })
);
export const field = (name) => ({ field: name });

// A line with its place in the legend; with `marks`, its points are marked.
export function addLine(chart, source, name, [colour, dash, marker], { marks = false, step = false } = {}) {
  const of = { x: field("x"), y: field("y"), source, name, color: colour };
  const drawn = [chart[step ? "step" : "line"]({
    ...of, line_dash: DASHES[dash], line_width: 1.8, ...(step ? { mode: "after" } : {}),
  })];
  // A single point has no line, and must be seen all the same.
  const points = source.data.x.length;
  if (marks || points === 1) {
    const few = points > 2 * SIGNS ? { view: only([...new Set(evenly(points - 1, SIGNS))]) } : {};
    drawn.push(chart.scatter({ ...of, marker: MARKERS[marker], size: 6, ...few }));
  }
  addToLegend(chart, name, drawn);
  return drawn;
}

export function addToLegend(chart, name, renderers) {
  let [legend] = chart.below.filter((one) => one instanceof Bokeh.Legend);
  if (!legend) {
    legend = new Bokeh.Legend({
      click_policy: "hide", orientation: "horizontal", ncols: "auto", background_fill_color: null,
      border_line_color: null, label_text_color: INK, label_text_font_size: "11px", spacing: 8, items: [],
    });
    chart.add_layout(legend, "below");
  }
  legend.items = [...legend.items, new Bokeh.LegendItem({ label: { value: name }, renderers })];
}

// The text of a chart on a point, by the spec; `[words, column]` fill it.
export const tipsOf = (name, filled = ["{}", "{}"]) => SPEC.charts[name].hover.map(
  ([what, value]) => [what.replace("{}", filled[0]), value.replace("@{}", `@${filled[1]}`)],
);

// Adds what a chart says, and where its range begins: once its lines are there.
export function finish(chart, name, { line = true } = {}) {
  const { from, to, x_from: xFrom, hover } = SPEC.charts[name];
  if (from !== undefined) chart.y_range.start = from;
  if (to !== undefined) chart.y_range.end = to;
  if (xFrom !== undefined) chart.x_range.start = xFrom;
  for (const [axis, place, begin] of [["x", "below", xFrom], ["y", "left", from]]) {
    if (begin === 1) axisOf(chart, place).ticker = new Bokeh.FixedTicker({ ticks: roundTicks(chart, axis) });
  }
  if (!chart.renderers.some(({ data_source: { data } }) => Object.values(data).some((column) => column.length))) {
    // Bokeh complains of a logarithmic axis with nothing on it.
    for (const axis of ["x_range", "y_range"]) {
      if (chart[axis] instanceof Bokeh.DataRange1d) chart[axis] = new Bokeh.Range1d({ start: 1, end: 10 });
    }
  }
  if (!hover) return;
  const tooltips = [...(line ? [["", "$name"]] : []), ...tipsOf(name)];
  chart.add_tools(new Bokeh.HoverTool({ tooltips, renderers: [...chart.renderers], muted_policy: "ignore" }));
}

// Round places on an axis of slowdowns.
function roundTicks(chart, axis) {
  const columns = chart.renderers.map(({ glyph, data_source: { data } }) => data[glyph[axis]?.field] ?? []);
  const most = columns.flatMap((column) => [...column]).reduce((best, value) => Math.max(best, value), 1);
  return SPEC.round[most <= 2 ? "near" : "far"];
}

export const tap = (chart, renderers) => chart.add_tools(new Bokeh.TapTool({ renderers }));
export const hoverOf = (chart, renderers, tooltips) => chart.add_tools(new Bokeh.HoverTool({ renderers, tooltips }));

// Failures as vertical lines that say what they are: `[ms, words]`.
export function mark(chart, failures) {
  for (const [location] of failures) {
    chart.add_layout(new Bokeh.Span({ location, dimension: "height", line_color: "#c8402f", line_dash: "dotted" }));
  }
  if (!failures.length) return;
  const source = sourceOf({ x: failures.map(([ms]) => ms), y: failures.map(() => 0), what: failures.map(([, of]) => of) });
  const at = { x: field("x"), y: field("y"), source };
  const signs = chart.scatter({ ...at, marker: "triangle", size: 9, color: "#c8402f" });
  hoverOf(chart, [signs], [["at", "@x{0.000} ms"], ["", "@what"]]);
}
