// What is said in words, of a packet or of a link. Times are exact, to the picosecond.

import { above } from "clearway/history.js";

const PS_A_US = 1_000_000;

// Microseconds with all their digits.
export function us(ps) {
  const whole = Math.round(ps), sign = whole < 0 ? "−" : "", far = Math.abs(whole);
  const digits = String(far % PS_A_US).padStart(6, "0").replace(/0+$/, "");
  return `${sign}${Math.floor(far / PS_A_US).toLocaleString("en")}${digits ? `.${digits}` : ""} µs`;
}

export const size = (bytes) => `${bytes.toLocaleString("en")} B`;
const many = (count, what) => `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;

// Whose packets these are, those with most bytes first.
function whose(history, rows, most = 3) {
  const of = new Map();
  for (const row of rows) {
    const key = history.isFrame(row) || Number.isNaN(history.flow[row]) ? "no flow" : `flow ${history.flow[row]}`;
    const [count, bytes] = of.get(key) ?? [0, 0];
    of.set(key, [count + 1, bytes + history.bytes[row]]);
  }
  const sorted = [...of].sort((a, b) => b[1][1] - a[1][1]);
  const said = sorted.slice(0, most).map(([name, [count]]) => `${many(count, "packet")} of ${name}`);
  if (sorted.length > most) said.push(`others of ${many(sorted.length - most, "more flow")}`);
  return said.join(", ");
}

// What its link sent while a packet waited for it, with what was being sent when it came.
export function passed(history, row) {
  const { rows, times } = history.links[history.link[row]], found = [];
  const [came, left] = [history.came_ps[row], history.time_ps[row]];
  for (let at = above(times, left) - 1; at >= 0 && history.last_ps[rows[at]] > came; at--) {
    if (rows[at] !== row) found.push(rows[at]);
  }
  return found;
}

// `{ title, about, lines }` of a packet: what it is, and what became of it, each line with its time.
export function storyOf(history, row) {
  const rows = history.way(row), first = rows[0], { view } = history, lines = [];
  const says = history.word("says", first), scheme = history.word("transport", first);
  const isData = history.payload_bytes[first] > 0, isFrame = history.isFrame(first);
  const what = isFrame ? "Frame between neighbours" : isData ? "Data packet" : "Control packet";
  const about = [
    `${history.word("source", first)} → ${history.word("destination", first)}, ${scheme}, `
      + `${size(history.bytes[first])}${isData ? ` (${size(history.payload_bytes[first])} of its message)` : ""}, `
      + `priority ${history.class[first]}.`,
  ];
  if (says) about.push(`It says: ${says}.`);
  const place = history.flowRow.get(history.flow[first]);
  if (place !== undefined && !isFrame) about.push(flowSaid(view.tables.flows.columns, place));
  let queued = 0, marked = history.marked[first] > 0, trimmed = history.trimmed[first] > 0;
  rows.forEach((one, at) => {
    const [node, to] = [history.word("node", one), history.word("to_node", one)], left = history.time_ps[one];
    if (history.lost[one]) {
      lines.push([left, `Lost at ${node}: ${history.word("lost", one)}.`]);
      return;
    }
    const wait = left - history.came_ps[one];
    if (at === 0) lines.push([left, `Leaves ${node} for ${to}.`]);
    else {
      queued += wait;
      lines.push([history.came_ps[one], wait > 0
        ? `Comes to ${node} and waits ${us(wait)} for ${to}${behind(history, one)}.`
        : `Comes to ${node}, which sends it on to ${to} at once.`]);
      if (wait > 0) lines.push([left, `Leaves ${node} for ${to}.`]);
    }
    if (!marked && history.marked[one] > 0) lines.push([left, `Bears a congestion mark from ${node} on.`]);
    if (!trimmed && history.trimmed[one] > 0) lines.push([left, `${node} has cut its payload off.`]);
    marked ||= history.marked[one] > 0;
    trimmed ||= history.trimmed[one] > 0;
    if (at === rows.length - 1) lines.push([history.arrive[one], `Its last bit has come to ${to}.`]);
  });
  const last = rows.at(-1), end = history.lost[last] ? history.time_ps[last] : history.arrive[last];
  const waits = queued > 0 ? us(queued) : "none";
  const total = `${us(end - history.time_ps[first])} in all, ${waits} of them in queues.`;
  const flow = isFrame || Number.isNaN(history.flow[first]) ? "" : ` of flow ${history.flow[first]}`;
  return { title: `${what}${flow}`, about, lines, total, rows };
}

function behind(history, row) {
  const before = passed(history, row);
  return before.length ? `; meanwhile the link sends ${whose(history, before)}` : "";
}

function flowSaid(columns, row) {
  const word = (name) => columns[name].names[columns[name].values[row]];
  const number = (name) => columns[name].values[row];
  const slowdown = number("slowdown").toLocaleString("en", { maximumFractionDigits: 2 });
  const ended = word("status") === "completed"
    ? `, completed at ${us(number("completed_ps"))}: ${slowdown} times its time alone`
    : `, ${word("status")}`;
  return `Flow ${number("flow")} of class ${word("class")}: ${size(number("bytes"))}, `
    + `began at ${us(number("start_ps"))}${ended}.`;
}

// What waits for a link, in a line.
export function linkSaid(history, link, time) {
  const { names, ends } = history.fabric, [from, to] = ends[link].map((node) => names[node]);
  const of = history.congestedAt(time).get(link), held = history.heldAt(time).filter((one) => one.link === link);
  const parts = [`${from} → ${to}: ${size(history.waiting(link, time))}`];
  if (of?.root) parts.push("a root of congestion");
  else if (of?.hot) parts.push("a hotspot");
  if (held.length) parts.push(`told to hold back ${held.map(({ what }) => what).join("; ")}`);
  if (of?.bytes && of.innocent) parts.push(`${Math.round((100 * of.innocent) / of.bytes)}% innocent`);
  return parts.join(", ");
}

// What is under way at a time, in a line.
export function nowSaid(history, time) {
  const flying = history.links.reduce((all, _, link) => all + history.flying(link, time).length, 0);
  const waiting = history.links.reduce((all, _, link) => all + history.waiting(link, time), 0);
  const ports = new Set(history.heldAt(time).map(({ link }) => link)).size, every = [...history.congestedAt(time).values()];
  const parts = history.isSampled ? [] : [`${many(flying, "packet")} on links`];
  parts.push(`${size(waiting)} in queues`);
  if (history.hasPauses) parts.push(`${many(ports, "port")} told to hold back`);
  if (!history.samples.times.length) return parts.join(" · ");
  parts.push(`${many(every.filter(({ root }) => root).length, "root")} of congestion`);
  const sum = (key) => every.reduce((all, of) => all + of[key], 0), held = sum("heldBytes");
  if (held) parts.push(`${size(held)} held, ${Math.round((100 * sum("innocent")) / held)}% innocent`);
  return parts.join(" · ");
}
