// How lines are told apart, as `reports/looks.py` does it: a look is [colour, dash, marker], in the words of the spec.
import { SPEC } from "spec";
import { column } from "./columns.js";

const { colours, dashes, markers, schemes } = SPEC.looks;
const COLOURS = Object.values(colours), DASHES = Object.keys(dashes), MARKERS = Object.keys(markers);
const LOOKS = Object.fromEntries(Object.entries(schemes).map(([name, [of, ...more]]) => [name, [colours[of], ...more]]));
const same = (one, other) => one.every((part, at) => part === other[at]);

// The look of a transport, a flow control, or one over the other.
function look(name) {
  const [over, below] = name.split(" over ");
  if (below && over === "rdma") return Object.hasOwn(LOOKS, below) ? LOOKS[below] : null;
  return [undefined, "pfc"].includes(below) && Object.hasOwn(LOOKS, over) ? LOOKS[over] : null;
}

// A look for each name, no two alike: its own, and what is free for names that have none.
export function looks(names) {
  const found = [];
  for (const name of names) {
    const own = look(name);
    found.push(own && found.some((one) => one && same(one, own)) ? null : own);
  }
  const taken = found.filter(Boolean), used = new Map(COLOURS.map((colour) => [colour, 0]));
  for (const [colour] of taken) used.set(colour, used.get(colour) + 1);
  return found.map((own) => {
    if (own) return own;
    const one = free(taken, used);
    taken.push(one);
    used.set(one[0], used.get(one[0]) + 1);
    return one;
  });
}

// A look that is not taken, of a colour that is taken least.
function free(taken, used) {
  const colour = COLOURS.reduce((best, one) => (used.get(one) < used.get(best) ? one : best));
  for (const marker of MARKERS) for (const dash of DASHES) {
    const one = [colour, dash, marker];
    if (!taken.some((other) => same(one, other))) return one;
  }
  return [colour, "-", "o"];
}

// The look of a result: that of its scheme, if it has one alone.
export const lookOf = (result) => looks([schemeOf(result)])[0];

function schemeOf({ tables, scenario }) {
  const transports = tables.flows?.columns.transport?.names ?? [...new Set(column(tables.flows, "transport"))];
  const of = scenario.flow_control ?? "none", below = typeof of === "string" ? of : Object.keys(of)[0] ?? "none";
  if (transports.length !== 1) return "";
  return below === "none" ? transports[0] : `${transports[0]} over ${below}`;
}
