// Numbers of a run, in words: those that the scenes' texts name.
import { column, mean, most, sum } from "./report/columns.js";

export const number = (value, digits = 3) =>
  Number.isFinite(value) ? value.toLocaleString("en", { maximumSignificantDigits: digits }) : "–";

const scaled = (value, steps) => {
  const [size, unit] = steps.find(([least]) => Math.abs(value) >= least) ?? steps.at(-1);
  return `${number(value / size)} ${unit}`;
};
export const bytes = (value) => scaled(value, [[1e9, "GB"], [1e6, "MB"], [1e3, "KB"], [1, "B"]]);
export const rate = (value) => scaled(value, [[1e9, "Gbps"], [1e6, "Mbps"], [1e3, "Kbps"], [1, "bps"]]);
export const time = (ps) => scaled(ps, [[1e12, "s"], [1e9, "ms"], [1e6, "µs"], [1e3, "ns"], [1, "ps"]]);

// The numbers that the texts name.
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

// The rate of each entity's hosts, in bits per second, over the whole run.
function entityRates({ info, tables }) {
  const got = new Map(), delivered = column(tables.entities, "delivered_bytes");
  column(tables.entities, "entity").forEach((name, at) => got.set(name, (got.get(name) ?? 0) + delivered[at]));
  return [...got].map(([name, all]) => [name, (all * 8e12) / info.end_ps]);
}
