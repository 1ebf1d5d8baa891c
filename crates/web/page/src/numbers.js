// Numbers of a run, and how they are said: those that texts name.
import { column, mean, most, places, sum } from "./report/columns.js";

export const number = (value, digits = 3) =>
  Number.isFinite(value) ? value.toLocaleString("en", { maximumSignificantDigits: digits }) : "–";

const scaled = (value, steps) => {
  const [size, unit] = steps.find(([least]) => Math.abs(value) >= least) ?? steps.at(-1);
  return `${number(value / size)} ${unit}`;
};
export const bytes = (value) => scaled(value, [[1e9, "GB"], [1e6, "MB"], [1e3, "KB"], [1, "B"]]);
export const rate = (value) => scaled(value, [[1e9, "Gbps"], [1e6, "Mbps"], [1e3, "Kbps"], [1, "bps"]]);
export const time = (ps) => scaled(ps, [[1e12, "s"], [1e9, "ms"], [1e6, "µs"], [1e3, "ns"], [1, "ps"]]);
const count = (value) => number(value, 9);
const share = (value) => `${number(100 * value)}%`;

// The numbers that texts name: of each its value and what says it. One that the run has not is not there.
export function numbersOf({ info, tables }) {
  const known = {};
  const add = (name, value, say) => { if (Number.isFinite(value)) known[name] = { value, text: say(value), say }; };
  const of = (table, name) => column(tables[table], name);
  add("flows", info.flows, count);
  add("flows_completed", info.flows_completed, count);
  add("hosts", info.hosts, count);
  add("end", info.end_ps, time);
  add("packet_hops", info.packet_hops, count);
  const classes = of("flows", "class"), slowdowns = of("flows", "slowdown"), sizes = of("flows", "bytes");
  const group = (rows, suffix) => {
    const done = rows.map((row) => slowdowns[row]).filter(Number.isFinite);
    add(`slowdown_mean${suffix}`, mean(done), number);
    add(`slowdown_max${suffix}`, most(done), number);
  };
  group([...slowdowns.keys()], "");
  for (const name of new Set(classes)) {
    const rows = places(classes, (one) => one === name);
    group(rows, `.${name}`);
    add(`flows.${name}`, rows.length, count);
    add(`bytes.${name}`, most(rows.map((row) => sizes[row])), bytes);
  }
  if (info.level !== "flow") add("data_packets", sum(of("flows", "sent_packets")), count);
  const queue = most(of("links", "queued_bytes_max"));
  add("queue_max", queue, bytes);
  add("queue_packets", Math.floor(queue / 1500), count);
  add("link_rate", most(of("links", "rate_bps")), rate);
  const counted = of("counters", "value");
  of("counters", "counter").forEach((name, at) => add(`counter.${name}`, counted[at], count));
  const filled = of("guarantees", "share");
  add("guarantee_share", most(filled), share);
  const tenants = entityRates({ info, tables });
  for (const [name, got] of tenants) add(`tenant.${name}`, got, rate);
  const each = tenants.map(([name, got]) => `${name} ${rate(got)}`).join(", ");
  add("tenants", tenants.length || NaN, () => each);
  add("aq_marked", tables.aqs && sum(of("aqs", "marked_packets")), count);
  add("aq_dropped", tables.aqs && sum(of("aqs", "dropped_packets")), count);
  add("collective_time", most(of("collectives", "time_ps")), time);
  add("collective_bus", most(of("collectives", "bus_bps")), rate);
  return known;
}

// The names in braces of a text.
export const namesIn = (text) => [...text.matchAll(/\{([^{}]+)\}/g)].map(([, name]) => name);

// A text with its numbers; before there is a run, with dots.
export const filled = (text, known) =>
  text.replace(/\{([^{}]+)\}/g, (_, name) => known?.[name]?.text ?? "…");

// The rate of each entity's hosts in the second half of the run, in bits per second.
function entityRates({ info, tables }) {
  const got = new Map(), [delivered, times, names] = ["delivered_bytes", "time_ps", "entity"]
    .map((name) => column(tables.entities, name));
  const begin = info.end_ps / 2;
  names.forEach((name, at) => { if (times[at] > begin) got.set(name, (got.get(name) ?? 0) + delivered[at]); });
  return [...got].map(([name, all]) => [name, (all * 8e12) / (info.end_ps - begin)]);
}
