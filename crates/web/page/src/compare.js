// Two runs beside each other: their numbers, and where their histories part.
import { percent } from "./report/columns.js";

// The numbers that are compared, where both runs have them.
const WORDS = [
  [/^queue_max$/, "longest queue of a port"], [/^slowdown_mean$/, "mean slowdown"], [/^slowdown_max$/, "worst slowdown"],
  [/^slowdown_mean\.(.+)$/, "mean slowdown of $1"], [/^slowdown_max\.(.+)$/, "worst slowdown of $1"],
  [/^tenant\.(.+)$/, "rate of $1"], [/^collective_time$/, "time of the collective"],
  [/^packet_hops$/, "packets over links"], [/^flows_completed$/, "flows completed"], [/^end$/, "simulated"],
];
// Columns in which two packets may differ.
const TELLING = ["time_ps", "node", "to_node", "came_ps", "lost", "flow", "transport", "says", "source", "destination", "bytes"];

// `[words, before, after, difference]` of each number.
export function differences(before, after) {
  const both = Object.keys(before).filter((name) => after[name]);
  const named = WORDS.flatMap((words) => both.filter((name) => words[0].test(name)).map((name) => [name, words]));
  return named.flatMap(([name, found]) => {
    // One class alone is all flows.
    if (/^slowdown_\w+\./.test(name) && Object.keys(before).filter((one) => one.startsWith("slowdown_mean.")).length < 2) return [];
    const { value: was, text: then, say } = before[name], { value: is, text: now } = after[name], more = is - was;
    const ratio = was > 0 && more ? ` (${more > 0 ? "+" : "−"}${percent(Math.abs(more / was), 0)})` : "";
    const difference = more ? `${more > 0 ? "+" : "−"}${say(Math.abs(more))}${ratio}` : "the same";
    return [[name.replace(...found), then, now, difference]];
  });
}

// The first packet in which two views differ: its row, which is the same in both, and the earlier of the two times. Null
// if one view is as the other, as far as both go.
export function parting(before, after) {
  const [one, other] = [before, after].map(({ tables }) => tables.packets);
  if (!one || !other) return null;
  const alike = TELLING.map((name) => {
    const [a, b] = [one.columns[name], other.columns[name]];
    if (a.kind === "names") return (row) => a.names[a.values[row]] === b.names[b.values[row]];
    return (row) => Object.is(a.values[row], b.values[row]);
  });
  const rows = Math.min(one.rows, other.rows);
  let row = 0;
  while (row < rows && alike.every((same) => same(row))) row++;
  if (row === one.rows && row === other.rows) return null;
  const time = Math.min(...[one, other].map(({ columns }) => columns.time_ps.values[row] ?? Infinity));
  return { row, time };
}
