// The numbers that a report's charts show, as `results/points.py` works them out of the same tables.
import { SPEC } from "spec";
import { column, evenly, firstNotBelow, least, mean, most, places, quantile, rising, sum } from "./columns.js";

export const SIZES = ["short", "medium", "long"];
export const SPENT = SPEC.spent.parts;
export const TIERS = SPEC.tiers;
// Flows in a point of slowdown by size, at least, unless a line has fewer.
const GROUP = 25;

// All flows, or one line per class and transport: `{ name, flows }`, of rows.
export function split({ name, tables: { flows } }) {
  const columns = ["class", "transport"].map((of) => column(flows, of));
  const several = columns.filter((values) => new Set(values).size > 1), lines = new Map();
  for (let row = 0; row < (flows?.rows ?? 0); row++) {
    const of = several.length ? several.map((values) => values[row]).join(", ") : name;
    if (!lines.has(of)) lines.set(of, []);
    lines.get(of).push(row);
  }
  if (!lines.size) lines.set(name, []);
  return [...lines].map(([of, rows]) => ({ name: of, flows: rows }));
}

// Each flow's class by length.
export function sizesOf({ info, tables }) {
  const bdp = info.bdp_bytes;
  return column(tables.flows, "bytes").map((bytes) => SIZES[bytes <= bdp ? 0 : bytes <= 8 * bdp ? 1 : 2]);
}

// Slowdown by flow size, one list per line: flows sorted by size and divided into groups of equal number, alike in all
// lines.
export function bySize({ tables }, lines) {
  const bytes = column(tables.flows, "bytes"), slowdown = column(tables.flows, "slowdown");
  const sizes = rising(lines.flatMap(({ flows }) => flows.map((row) => bytes[row])));
  const groups = Math.trunc(Math.min(Math.max(sizes.length / Math.max(lines.length, 1) / GROUP, 1), 16));
  const cuts = Array.from({ length: groups + 1 }, (_, at) => (at === groups ? 1 : at / groups));
  const limits = sizes.length ? [...new Set(cuts.map((share) => quantile(sizes, share)))].sort((a, b) => a - b) : [];
  return lines.map(({ flows }) => {
    const of = new Map();
    for (const row of flows) {
      const group = Math.max(0, firstNotBelow(limits, bytes[row]) - 1);
      if (!of.has(group)) of.set(group, []);
      of.get(group).push(row);
    }
    return [...of].sort((a, b) => a[0] - b[0]).flatMap(([group, rows]) => {
      const values = rising(rows.map((row) => slowdown[row]).filter((value) => !Number.isNaN(value)));
      if (!values.length) return [];
      return [{
        size: quantile(rising(rows.map((row) => bytes[row])), 0.5), flows: values.length, mean: mean(values),
        p99: quantile(values, 0.99), low: group ? limits[group] : 0, high: limits[Math.min(group + 1, limits.length - 1)],
      }];
    });
  });
}

// At most 500 values of a column in order, and the share of flows up to each.
export function distribution({ tables }, { flows }, name) {
  const of = column(tables.flows, name);
  const values = rising(flows.map((row) => of[row]).filter((value) => !Number.isNaN(value)));
  const at = values.length ? [...new Set(evenly(values.length - 1, 500))] : [];
  return { x: at.map((place) => values[place]), y: at.map((place) => (place + 1) / flows.length) };
}

// At most 300 points, each a summary of its neighbours.
export function thinned(x, y, summary) {
  if (x.length <= 300) return { x, y };
  const cuts = evenly(x.length, 301), parts = cuts.slice(1).map((to, at) => [cuts[at], to]);
  const of = (values, how) => parts.map(([from, to]) => how(values.slice(from, to)));
  return { x: of(x, mean), y: of(y, summary) };
}

export function tiers({ tables }) {
  const known = new Set(column(tables.utilisation, "tier"));
  return Object.keys(TIERS).filter((tier) => known.has(tier));
}

export function utilisation({ tables: { utilisation: table } }, tier) {
  const times = column(table, "time_ps"), used = column(table, "utilisation"), of = column(table, "tier");
  const rows = places(of, (one) => one === tier);
  return thinned(rows.map((row) => times[row] / 1e9), rows.map((row) => used[row]), mean);
}

// The largest of the simultaneous samples, in KB.
export function queues({ tables: { queues: table } }, name) {
  const longest = new Map(), values = column(table, name);
  column(table, "time_ps").forEach((time, row) => longest.set(time, Math.max(longest.get(time) ?? 0, values[row])));
  const times = [...longest.keys()].sort((a, b) => a - b);
  return thinned(times.map((time) => time / 1e9), times.map((time) => longest.get(time) / 1e3), most);
}

// Of each entity: what it sent and arrived in the interval until then, in Gbps.
export function entities({ tables: { entities: table } }) {
  const at = column(table, "time_ps"), names = column(table, "entity"), bytes = column(table, "delivered_bytes");
  const times = [...new Set(at)].sort((a, b) => a - b), place = new Map(times.map((time, step) => [time, step]));
  const spans = times.map((time, step) => time - (times[step - 1] ?? 0)), known = places(spans, (span) => span > 0);
  return [...new Set(names)].map((name) => {
    const bits = times.map(() => 0);
    names.forEach((one, row) => { if (one === name) bits[place.get(at[row])] += bytes[row] * 8; });
    const [x, y] = [known.map((step) => times[step] / 1e9), known.map((step) => (bits[step] * 1e3) / spans[step])];
    return { name, ...thinned(x, y, mean) };
  });
}

// Completed flows of a size class.
export function ofSize(result, size) {
  const sizes = sizesOf(result), times = column(result.tables.flows, "fct_ps");
  return places(sizes, (one, row) => one === size && !Number.isNaN(times[row]));
}

// Where the time of each flow went: picoseconds by the columns of SPENT. The time at the sender is divided: earlier packets
// take at least as long as in an empty network, and the rest is waiting.
export function parts({ tables: { flows } }) {
  const of = (name) => column(flows, name), [wait, ideal, again] = ["wait_ps", "ideal_ps", "resent_packets"].map(of);
  const known = Object.fromEntries(SPENT.slice(3).map(([name]) => [name, of(name)]));
  const alone = (row) => ideal[row] - known.serialised_ps[row] - known.propagation_ps[row];
  const message = wait.map((time, row) => Math.min(Math.max(alone(row), 0), time));
  // As in `results/points.py`: of a flow that has not completed it is not known.
  const rest = (repeated) => wait.map((time, row) => (
    again[row] > 0 === repeated || (repeated && Number.isNaN(time)) ? time - message[row] : 0
  ));
  return { message_ps: message, limits_ps: rest(false), recovery_ps: rest(true), ...known };
}

// Where their time went: mean microseconds by cause.
export function spent(result, size) {
  const rows = ofSize(result, size), every = parts(result);
  return Object.fromEntries(SPENT.map(([name]) => (
    [name, rows.length ? mean(rows.map((row) => every[name][row])) / 1e6 : 0]
  )));
}

// For each tier, the link that came nearest to its bound.
export function fullest({ tables: { guarantees: table } }) {
  const share = column(table, "share"), of = column(table, "tier");
  return Object.keys(TIERS).map((tier) => {
    const rows = places(of, (one) => one === tier);
    if (!rows.length) return { tier, most: NaN, bound: NaN };
    const row = rows.reduce((best, one) => (share[one] > share[best] ? one : best));
    const kb = (name) => column(table, name)[row] / 1e3;
    return { tier, most: kb("queue_max_bytes"), bound: kb("queue_bound_bytes") };
  });
}

// Waits in microseconds, the share of packets that waited longer than each, and the bound.
export function waits({ tables: { guaranteed_waits: table } }, smallest) {
  const shares = column(table, "quantile"), times = column(table, "wait_ps"), bounds = column(table, "wait_bound_ps");
  return {
    x: [0, ...times.map((time) => time / 1e6)],
    y: [1, ...shares.slice(0, -1).map((share) => 1 - share), smallest / 100],
    bound: bounds.at(-1) / 1e6,
  };
}

// The switch of each host; of a host with several links, the first.
export function racks({ tables: { links } }) {
  const from = column(links, "from_node"), to = column(links, "to_node"), found = new Map();
  column(links, "tier").forEach((tier, row) => {
    const host = /^host(\d+)$/.exec(from[row]);
    if (tier === "from_host" && host && !found.has(Number(host[1]))) found.set(Number(host[1]), to[row]);
  });
  return found;
}

// Message bytes delivered per second, in bit/s, from the first start to the last delivery.
export function goodput({ tables: { flows } }) {
  const delivered = column(flows, "delivered_ps"), done = places(delivered, (time) => !Number.isNaN(time));
  const began = least(column(flows, "start_ps").filter((time) => !Number.isNaN(time)));
  const span = most(done.map((row) => delivered[row])) - began, bytes = column(flows, "bytes");
  return span > 0 ? (sum(done.map((row) => bytes[row])) * 8e12) / span : 0;
}
