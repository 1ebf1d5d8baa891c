// The charts of a report, as `reports/report_charts.py` makes them of the same numbers.
import { SPEC } from "spec";
import { addLine, axisOf, chartOf, field, finish, hoverOf, mark, sourceOf, tap, tipsOf } from "./draw.js";
import { lookOf, looks } from "./looks.js";
import {
  SIZES, SPENT, TIERS, bySize, distribution, entities, fullest, ofSize, queues, spent, split, tiers, utilisation, waits,
} from "./points.js";

// With more lines than this, markers are needed to tell them apart.
const MANY = 8;

const looksOf = (result, lines) => (lines.length === 1 ? [lookOf(result)] : looks(lines.map(({ name }) => name)));

// Slowdown by flow size: mean, and 99th percentile. A click on a point shows its flows.
export function slowdown(result) {
  const lines = split(result), every = bySize(result, lines), shown = looksOf(result, lines);
  return ["mean", "p99"].map((statistic) => {
    const chart = chartOf(statistic), marks = [];
    lines.forEach(({ name }, at) => {
      const of = (key) => every[at].map((group) => group[key]);
      const data = { x: of("size"), y: of(statistic), flows: of("flows"), low: of("low"), high: of("high") };
      const source = sourceOf(data, `size ${statistic} ${at}`);
      marks.push(...addLine(chart, source, name, shown[at], { marks: true }).slice(1));
    });
    finish(chart, statistic);
    tap(chart, marks);
    return chart;
  });
}

export function distributions(result) {
  const lines = split(result), shown = looksOf(result, lines);
  return ["fct_ps", "slowdown"].map((name) => {
    const chart = chartOf(name);
    lines.forEach((line, at) => {
      const { x, y } = distribution(result, line, name), values = name === "fct_ps" ? x.map((value) => value / 1e6) : x;
      addLine(chart, sourceOf({ x: values, y }, `share ${name} ${at}`), line.name, shown[at], { marks: lines.length > MANY });
    });
    finish(chart, name);
    return chart;
  });
}

function overTime(result, name, points, failures, title) {
  const chart = chartOf(name, title);
  if (points.x.length) addLine(chart, sourceOf(points), result.name, lookOf(result));
  mark(chart, failures);
  finish(chart, name);
  return chart;
}

export const utilisations = (result, failures) => (
  tiers(result).map((tier) => overTime(result, "utilisation", utilisation(result, tier), failures, TIERS[tier]))
);
export const longestQueues = (result, failures) => (
  ["longest_bytes", "used_bytes"].map((name) => overTime(result, name, queues(result, name), failures))
);

// The bytes that each entity received.
export function tenants(result, failures) {
  const every = entities(result), chart = chartOf("entities", result.name);
  const shown = looks(every.map(() => ""));
  every.forEach(({ name, x, y }, at) => addLine(chart, sourceOf({ x, y }), name, shown[at], { marks: every.length > MANY }));
  mark(chart, failures);
  finish(chart, "entities");
  return [chart];
}

export function whereTimeWent(result) {
  return SIZES.filter((size) => ofSize(result, size).length).map((size) => {
    const names = [result.name], of = spent(result, size);
    const range = new Bokeh.FactorRange({ factors: names });
    const chart = chartOf("spent", size, { y_range: range, height: 138 });
    const source = sourceOf({ name: names, ...Object.fromEntries(SPENT.map(([column]) => [column, [of[column]]])) });
    const until = (count) => ({ expr: new Bokeh.Stack({ fields: SPENT.slice(0, count).map(([column]) => column) }) });
    SPENT.forEach(([column, words, color], at) => {
      const where = { left: until(at), right: until(at + 1), y: field("name"), height: 0.65 };
      const bar = chart.hbar({ ...where, color, source, name: column });
      hoverOf(chart, [bar], tipsOf("spent", [words, column]));
    });
    for (const grid of chart.center.filter((one) => one instanceof Bokeh.Grid && one.dimension === 1)) grid.visible = false;
    return chart;
  });
}

// Guaranteed bounds against measurements: the fullest queues by tier, and the waits of packets.
export function guarantees(result) {
  const look = lookOf(result), [colour] = look, of = fullest(result);
  const places = Object.keys(TIERS).map((tier) => [tier.replace("_", " "), result.name]);
  const full = chartOf("full", "", { x_range: new Bokeh.FactorRange({ factors: places }) });
  const source = sourceOf({ x: places, most: of.map(({ most }) => most), bound: of.map(({ bound }) => bound) });
  full.vbar({ x: field("x"), top: field("most"), width: 0.8, color: colour, source });
  full.scatter({
    x: field("x"), y: field("bound"), marker: "dash", size: 24, color: SPEC.looks.ink, line_width: 3, source,
  });
  axisOf(full, "below").major_label_orientation = 0.9;
  finish(full, "full", { line: false });
  const late = chartOf("late"), { x, y, bound } = waits(result, 1e-5);
  addLine(late, sourceOf({ x, y }), result.name, look, { step: true });
  late.add_layout(new Bokeh.Span({ location: bound, dimension: "height", line_color: colour, line_dash: "dashed" }));
  finish(late, "late");
  return [full, late];
}
