// The flows of a run, to be filtered and clicked, as `reports/explorer.py` makes them. The script that acts on them is
// `reports/explorer.js`, the script of every report.
import { addLine, chartOf, field, finish, hoverOf, markerOf, mark, only, sourceOf, tap, tipsOf } from "./draw.js";
import { column, evenly } from "./columns.js";
import { lookOf } from "./looks.js";
import { SIZES, SPENT, parts, racks, sizesOf, split } from "./points.js";

// Flows that a page holds; of the slowest share each one.
const FLOWS_MAX = 12_000, SLOWEST = 0.02;

// The flows that a page holds as columns, each with the number of flows that it stands for.
export function flowsOf(result) {
  const { flows } = result.tables, { end_ps: end } = result.info, of = (name) => column(flows, name);
  const [start, slowdown, ideal] = ["start_ps", "slowdown", "ideal_ps"].map(of), size = sizesOf(result);
  const rows = [...start.keys()].filter((row) => !Number.isNaN(start[row]));
  const isDone = (row) => !Number.isNaN(slowdown[row]);
  const taken = (row) => (isDone(row) ? slowdown[row] : Math.max((end - start[row]) / ideal[row], 1e-3));
  rows.sort((a, b) => isDone(a) - isDone(b) || taken(b) - taken(a) || a - b);
  const started = rows.length, left = rows.filter((row) => !isDone(row)).length;
  const slow = Math.min(Math.max(left, Math.trunc(started * SLOWEST)), FLOWS_MAX / 2);
  let kept = rows, stand = 1;
  if (started > FLOWS_MAX) {
    const rest = [...new Set(evenly(started - 1 - slow, FLOWS_MAX - slow))].map((at) => at + slow);
    stand = (started - slow) / rest.length;
    kept = [...rows.slice(0, slow), ...rest.map((at) => rows[at])];
  }
  const rack = racks(result), look = lookOf(result), take = (values) => kept.map((row) => values[row]);
  const us = (name) => take(of(name)).map((time) => time / 1e6);
  const racksOf = (end) => take(of(end)).map((host) => rack.get(host) ?? "");
  const found = {
    flow: take(of("flow")), src: take(of("src")), dst: take(of("dst")), bytes: take(of("bytes")),
    kind: take(of("class")), transport: take(of("transport")), size: take(size),
    start_ms: take(start).map((time) => time / 1e9), fct_us: us("fct_ps"), ideal_us: us("ideal_ps"),
    slowdown: kept.map(taken), done: kept.map(isDone), status: take(of("status")),
  };
  if (result.info.level !== "flow") {
    found.resent = take(of("resent_packets"));
    for (const [name, times] of Object.entries(parts(result))) found[name] = take(times).map((time) => time / 1e6);
  }
  return {
    ...found, src_rack: racksOf("src"), dst_rack: racksOf("dst"),
    weight: kept.map((_, at) => (started > FLOWS_MAX && at >= slow ? stand : 1)), run: kept.map(() => 0),
    name: kept.map(() => result.name), colour: kept.map(() => look[0]),
    marker: kept.map((row) => (isDone(row) ? markerOf(look) : "x")),
  };
}

// The filters: `[column, words, values]`.
export function choices(flows) {
  const values = (name, order) => [...new Set(flows[name])].sort(order);
  const natural = (a, b) => a.length - b.length || (a < b ? -1 : 1);
  const rack = [...new Set([...flows.src_rack, ...flows.dst_rack])].filter(Boolean).sort(natural);
  return [
    ["kind", "class", values("kind")], ["transport", "transport", values("transport")],
    ["size", "size", SIZES.filter((size) => flows.size.includes(size))],
    ["src_rack", "from rack", rack], ["dst_rack", "to rack", rack],
  ].filter(([, , of]) => of.length > 1);
}

// Each flow by its size and by its start, and the shares of those that the filters leave.
export function charts(result, flows, failures) {
  const source = sourceOf(flows, "flows"), view = only([...flows.flow.keys()], "shown");
  const scatter = (name, x) => {
    const chart = chartOf(name);
    const points = chart.scatter({
      x: field(x), y: field("slowdown"), source, view, color: field("colour"), marker: field("marker"), size: 5,
      alpha: 0.55, nonselection_alpha: 0.25, selection_line_color: "black", selection_alpha: 1,
    });
    hoverOf(chart, [points], tipsOf(name));
    tap(chart, [points]);
    return chart;
  };
  const size = scatter("flows_by_size", "bytes"), start = scatter("flows_by_start", "start_ms");
  mark(start, failures);
  const shares = chartOf("shares");
  addLine(shares, sourceOf({ x: [1, 1], y: [0, 0] }, "shares0"), result.name, lookOf(result));
  finish(shares, "shares");
  return [size, start, shares];
}

// The facts that the script needs.
export function facts(result) {
  const { flows } = result.tables, isPacket = result.info.level !== "flow";
  const lines = split(result).map(({ name, flows: rows }) => {
    const of = (key) => { const values = column(flows, key); return [...new Set(rows.map((row) => values[row]))].sort(); };
    return { name, run: 0, kinds: of("class"), transports: of("transport") };
  });
  return { runs: [result.name], lines, spent: isPacket ? SPENT : [], packets: isPacket };
}
