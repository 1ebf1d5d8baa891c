// Numbers of a run, in words: those that the scenes' texts name, and the tables and lines of its report.

export const number = (value, digits = 3) =>
  Number.isFinite(value) ? value.toLocaleString("en", { maximumSignificantDigits: digits }) : "–";

const scaled = (value, steps) => {
  const [size, unit] = steps.find(([least]) => Math.abs(value) >= least) ?? steps.at(-1);
  return `${number(value / size)} ${unit}`;
};
export const bytes = (value) => scaled(value, [[1e9, "GB"], [1e6, "MB"], [1e3, "KB"], [1, "B"]]);
export const rate = (value) => scaled(value, [[1e9, "Gbps"], [1e6, "Mbps"], [1e3, "Kbps"], [1, "bps"]]);
export const time = (ps) => scaled(ps, [[1e12, "s"], [1e9, "ms"], [1e6, "µs"], [1e3, "ns"], [1, "ps"]]);

const most = (values) => values.reduce((best, value) => (value > best ? value : best), -Infinity);
const sum = (values) => values.reduce((all, value) => all + value, 0);
const mean = (values) => sum(values) / values.length;

// Between order statistics, as everywhere in Clearway.
export function quantile(sorted, share) {
  if (!sorted.length) return NaN;
  const at = (sorted.length - 1) * share, below = Math.floor(at);
  return sorted[below] + (at - below) * ((sorted[below + 1] ?? sorted[below]) - sorted[below]);
}

// A column's numbers; of a column of names, the names.
export function column(table, name) {
  const of = table?.columns[name];
  if (!of) return [];
  return of.kind === "names" ? Array.from(of.values, (at) => of.names[at] ?? "") : Array.from(of.values);
}

// What the texts name.
export function numbersOf({ info, tables }) {
  const known = {
    flows: number(info.flows, 9), flows_completed: number(info.flows_completed, 9), hosts: number(info.hosts, 9),
  };
  const slowdowns = column(tables.flows, "slowdown"), classes = column(tables.flows, "class");
  const completed = slowdowns.filter(Number.isFinite);
  known.slowdown_mean = number(mean(completed));
  known.slowdown_max = number(most(completed));
  for (const name of new Set(classes)) {
    const of = slowdowns.filter((value, at) => classes[at] === name && Number.isFinite(value));
    known[`slowdown_mean.${name}`] = number(mean(of));
  }
  known.data_packets = number(sum(column(tables.flows, "sent_packets")), 9);
  const queue = most(column(tables.links, "queued_bytes_max"));
  known.queue_max = bytes(queue);
  known.queue_packets = number(Math.floor(queue / 1500), 9);
  const counted = column(tables.counters, "value");
  column(tables.counters, "counter").forEach((name, at) => { known[`counter.${name}`] = number(counted[at], 9); });
  if (tables.guarantees) known.guarantee_share = `${number(100 * most(column(tables.guarantees, "share")))}%`;
  if (tables.entities) {
    const shares = entityRates({ info, tables });
    known.tenants = shares.map(([name, got]) => `${name} ${rate(got)}`).join(", ");
    known.tenant_min = rate(Math.min(...shares.map(([, got]) => got)));
  }
  if (tables.aqs) {
    known.aq_marked = number(sum(column(tables.aqs, "marked_packets")), 9);
    known.aq_dropped = number(sum(column(tables.aqs, "dropped_packets")), 9);
  }
  if (tables.collectives) {
    known.collective_time = time(most(column(tables.collectives, "time_ps")));
    known.collective_bus = rate(most(column(tables.collectives, "bus_bps")));
  }
  return known;
}

// A text with its numbers: `known` is null before there is a run.
export const filled = (text, known) =>
  text.replace(/\{([a-z_]+(?:\.[\w-]+)?)\}/g, (_, name) => (known ? known[name] ?? "–" : "…"));

// What each entity's hosts got, in bits a second, over the whole run.
function entityRates({ info, tables }) {
  const got = new Map(), delivered = column(tables.entities, "delivered_bytes");
  column(tables.entities, "entity").forEach((name, at) => got.set(name, (got.get(name) ?? 0) + delivered[at]));
  return [...got].map(([name, all]) => [name, (all * 8e12) / info.end_ps]);
}

// Flows by class and transport; one line if there is one kind.
function split(flows) {
  const columns = ["class", "transport"].map((name) => column(flows, name));
  const several = columns.filter((values) => new Set(values).size > 1);
  const lines = new Map();
  for (let at = 0; at < (flows?.rows ?? 0); at++) {
    const name = several.map((values) => values[at]).join(", ") || "all flows";
    if (!lines.has(name)) lines.set(name, []);
    lines.get(name).push(at);
  }
  return lines;
}

// Slowdown by class and size: rows of a table, sizes by bandwidth-delay products as in the report.
export function slowdownRows({ info, tables }) {
  const sizes = column(tables.flows, "bytes"), slowdowns = column(tables.flows, "slowdown");
  const sizeOf = (at) => (sizes[at] <= info.bdp_bytes ? "short" : sizes[at] <= 8 * info.bdp_bytes ? "medium" : "long");
  const rows = [];
  for (const [name, every] of split(tables.flows)) {
    for (const size of ["short", "medium", "long"]) {
      const of = every.filter((at) => sizeOf(at) === size);
      if (!of.length) continue;
      const done = of.map((at) => slowdowns[at]).filter(Number.isFinite).sort((a, b) => a - b);
      const figures = [0.5, 0.99, 1].map((share) => quantile(done, share));
      const cells = [mean(done), ...figures].map((value) => number(value));
      rows.push([name, size, number(of.length, 9), number(of.length - done.length, 9), ...cells]);
    }
  }
  return rows;
}

// Charts: { title, x, y, log, lines: [{ name, points, dashed }] }.
export function charts(result) {
  const { tables } = result, found = [];
  const lines = split(tables.flows), bySize = [], byTime = [];
  const sizes = column(tables.flows, "bytes"), slowdowns = column(tables.flows, "slowdown");
  const times = column(tables.flows, "fct_ps");
  for (const [name, every] of lines) {
    const done = every.filter((at) => Number.isFinite(slowdowns[at])).sort((a, b) => sizes[a] - sizes[b]);
    const groups = bySizes(done, sizes);
    const of = (group) => group.map((at) => slowdowns[at]).sort((a, b) => a - b);
    const median = (group) => sizes[group[group.length >> 1]];
    bySize.push({ name, points: groups.map((group) => [median(group), mean(of(group))]), marks: true });
    bySize.push({
      name: `${name}, p99`, points: groups.map((group) => [median(group), quantile(of(group), 0.99)]), marks: true,
      dashed: true, like: name,
    });
    const sorted = done.map((at) => times[at] / 1e6).sort((a, b) => a - b);
    byTime.push({ name, points: sorted.map((value, at) => [value, (at + 1) / every.length]) });
  }
  found.push({
    title: "Slowdown by flow size: mean, 99th percentile", x: "flow size", y: "slowdown", lines: bySize, logX: true,
    logY: true, sayX: bytes,
  });
  found.push({ title: "Completion times", x: "µs", y: "share of flows", lines: byTime, logX: true, top: 1 });
  const queues = overTime(tables.queues, null, "longest_bytes", most, 1e-3);
  found.push({ title: "Longest queue of any port", x: "µs", y: "KB", lines: queues });
  found.push({ title: "Utilisation of links", x: "µs", y: "share", top: 1,
    lines: overTime(tables.utilisation, "tier", "utilisation", mean, 1, TIERS) });
  if (tables.entities) {
    const step = tables.entities.columns.time_ps.values[0] || 1;
    found.push({ title: "What each tenant got", x: "µs", y: "Gbps",
      lines: overTime(tables.entities, "entity", "delivered_bytes", sum, 8e3 / step) });
  }
  return found.filter((chart) => chart.lines.some((line) => line.points.length > 1));
}

const TIERS = { up: "from leaves up", down: "down to leaves", to_host: "to hosts" };

// Groups of equal number, as in the report: one a hundred flows, sixteen at most; flows of one size stay together.
function bySizes(sorted, sizes) {
  const wanted = Math.min(Math.max(Math.floor(sorted.length / 100), 1), 16);
  const groups = [];
  for (const at of sorted) {
    const last = groups.at(-1);
    const isFull = last && last.length >= sorted.length / wanted && sizes[last.at(-1)] !== sizes[at];
    if (!last || isFull) groups.push([at]); else last.push(at);
  }
  return groups;
}

// A column over time, a line a kind; values of one instant are made one by `fold`.
function overTime(table, kind, value, fold, factor, words = {}) {
  const at = column(table, "time_ps"), values = column(table, value), kinds = kind ? column(table, kind) : null;
  const lines = new Map();
  values.forEach((one, row) => {
    if (!Number.isFinite(one)) return;
    const name = kinds ? words[kinds[row]] ?? kinds[row] : "all";
    if (!lines.has(name)) lines.set(name, new Map());
    const line = lines.get(name);
    if (!line.has(at[row])) line.set(at[row], []);
    line.get(at[row]).push(one);
  });
  return [...lines].map(([name, line]) => (
    { name, points: [...line].map(([ps, some]) => [ps / 1e6, fold(some) * factor]) }
  ));
}
