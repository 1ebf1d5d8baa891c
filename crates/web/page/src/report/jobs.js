// Training jobs of a run: their table, what made them as long as they were, and a timeline of their ranks; as
// `results/jobs.py` and `reports/job_charts.py` say and draw them.
import { SPEC } from "spec";
import { column, evenly, fixed, mean, percent, places, said, sum } from "./columns.js";
import { addLine, addToLegend, axisOf, chartOf, field, hoverOf, sourceOf, tipsOf } from "./draw.js";

const RANKS_MAX = 48;
const { compute: COMPUTE, critical: CRITICAL, collectives: COLLECTIVES } = SPEC.looks;

// The rows of a table whose `key` is a value, as objects of these columns.
function rowsOf(table, key, value, names) {
  const columns = names.map((name) => [name, column(table, name)]);
  return places(column(table, key), (one) => one === value)
    .map((row) => Object.fromEntries(columns.map(([name, values]) => [name, values[row]])));
}

export const names = ({ tables }) => [...new Set(column(tables.jobs, "job"))];

// A row for each job, as texts, and the heads of the columns.
export function summary(result) {
  const { jobs, collectives } = result.tables, hasAlone = column(jobs, "alone_ps").some((time) => !Number.isNaN(time));
  const rows = names(result).map((job) => {
    const of = rowsOf(jobs, "job", job, ["ranks", "time_ps", "computing_ps", "exposed_ps", "alone_ps"]);
    const done = of.filter((one) => !Number.isNaN(one.time_ps));
    const mine = rowsOf(collectives, "job", job, ["time_ps", "bus_bps"]).filter((one) => !Number.isNaN(one.time_ps));
    const spent = sum(mine.map((one) => one.time_ps));
    const bus = spent ? sum(mine.map((one) => one.bus_bps * one.time_ps)) / spent / 1e9 : NaN;
    const times = ["time_ps", "computing_ps", "exposed_ps"].map((name) => mean(done.map((one) => one[name])) / 1e6);
    const alone = sum(done.map((one) => one.alone_ps).filter((time) => !Number.isNaN(time)));
    const slowdown = hasAlone ? [sum(done.map((one) => one.time_ps)) / (alone || NaN)] : [];
    return [job, of[0].ranks, of.length, done.length, ...[...times, bus, ...slowdown].map(said)];
  });
  return { head: [...SPEC.tables.jobs, ...(hasAlone ? ["slowdown"] : [])], rows };
}

const PATH = ["rank", "to_rank", "part", "name", "flow", "begin_ps", "end_ps"];
const critical = (result, job) => rowsOf(result.tables.critical, "job", job, PATH).map((part) => (
  { ...part, begin: part.begin_ps / 1e6, end: part.end_ps / 1e6 }
));

// The causes of each job's length, in sentences.
export function sentences(result) {
  return names(result).flatMap((job) => {
    const path = critical(result, job), whole = sum(path.map(({ begin, end }) => end - begin));
    if (!whole) return [];
    const parts = Object.entries(SPEC.critical).flatMap(([part, words]) => {
      const spent = sum(path.filter((one) => one.part === part).map(({ begin, end }) => end - begin));
      return spent > 0 ? [`${percent(spent / whole, 1)} ${words}`] : [];
    });
    const longest = path.reduce((best, one) => (one.end - one.begin > best.end - best.begin ? one : best));
    const what = SPEC.critical[longest.part] + (longest.name ? ` of ${longest.name}` : "");
    const to = Number.isNaN(longest.to_rank) ? "" : ` to rank ${longest.to_rank}`;
    const flow = Number.isNaN(longest.flow) ? "" : `, flow ${longest.flow}`;
    return [
      `The critical path of ${job} takes ${fixed(whole, 1)} µs: ${parts.join(", ")}.`,
      `Its longest part is ${fixed(longest.end - longest.begin, 1)} µs: ${what}, rank ${longest.rank}${to}${flow}.`,
    ];
  });
}

// The ranks that a timeline draws: all, or of many those with most of the critical path, and others evenly.
function drawnRanks(count, path) {
  if (count <= RANKS_MAX) return Array.from({ length: count }, (_, rank) => rank);
  const spent = new Map();
  for (const { rank, begin, end } of path) spent.set(rank, (spent.get(rank) ?? 0) + end - begin);
  const slowest = [...spent].sort((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, RANKS_MAX / 2).map(([rank]) => rank);
  return [...new Set([...slowest, ...evenly(count - 1, RANKS_MAX - slowest.length)])].sort((a, b) => a - b);
}

// The activity of a job's ranks over time, and its critical path.
export function timeline(result, job) {
  const path = critical(result, job), count = rowsOf(result.tables.jobs, "job", job, ["ranks"])[0].ranks;
  const ranks = drawnRanks(count, path), place = new Map(ranks.map((rank, row) => [rank, row]));
  const wanted = ["rank", "host_name", "what", "name", "iteration", "begin_ps", "end_ps"];
  const mine = rowsOf(result.tables.ranks, "job", job, wanted)
    .filter((one) => !Number.isNaN(one.begin_ps) && !Number.isNaN(one.end_ps) && place.has(one.rank));
  const range = new Bokeh.Range1d({ start: ranks.length - 0.3, end: -0.7 });
  const chart = chartOf("timeline", job, { height: Math.min(120 + 14 * ranks.length, 700), y_range: range });
  const axis = axisOf(chart, "left");
  if (ranks.length < count) axis.axis_label = `rank (${ranks.length} of ${count.toLocaleString("en")})`;
  const stride = Math.max(1, Math.floor(ranks.length / 16));
  axis.ticker = new Bokeh.FixedTicker({ ticks: [...place.values()].filter((row) => row % stride === 0) });
  axis.major_label_overrides = new Map(ranks.map((rank, row) => [row, String(rank)]));
  const collectives = [...new Set(mine.filter(({ what }) => what === "collective").map(({ name }) => name))];
  const groups = [["compute", COMPUTE, 0.8, mine.filter(({ what }) => what === "compute")]];
  collectives.forEach((name, at) => {
    const of = mine.filter((one) => one.what === "collective" && one.name === name);
    groups.push([name, COLLECTIVES[at % COLLECTIVES.length], 0.45, of]);
  });
  for (const [name, colour, height, rows] of groups) {
    const of = (how) => rows.map(how);
    const source = sourceOf({
      rank: of(({ rank }) => rank), row: of(({ rank }) => place.get(rank)), host: of(({ host_name: host }) => host),
      left: of((one) => one.begin_ps / 1e6), right: of((one) => one.end_ps / 1e6),
      iteration: of(({ iteration }) => iteration), name: of((one) => one.name),
    });
    const at = { y: field("row"), left: field("left"), right: field("right"), height, source, color: colour, name };
    addToLegend(chart, name, [chart.hbar({ ...at, fill_alpha: 0.75, line_color: null })]);
  }
  hoverOf(chart, [...chart.renderers], tipsOf("timeline"));
  addLine(chart, sourceOf(pathLine(path, place)), "critical path", [CRITICAL, "-", "o"]);
  return chart;
}

// The critical path as points: along a rank while it computes, across to the receiver with a message. Ranks that are
// not drawn leave a gap.
function pathLine(path, place) {
  const row = (rank) => place.get(rank) ?? NaN;
  return {
    x: path.flatMap(({ begin, end }) => [begin, end]),
    y: path.flatMap(({ rank, to_rank: to, part }) => [row(rank), row(part === "answer" || Number.isNaN(to) ? rank : to)]),
  };
}
