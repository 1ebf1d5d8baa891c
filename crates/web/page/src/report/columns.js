// Columns of a run's tables as JavaScript has them, and numbers as the report says them.

const kept = new WeakMap();
const NONE = [];

// A column's numbers, NaN where there is none; of a column of names, the names. Kept, since a report asks often.
export function column(table, name) {
  const of = table?.columns[name];
  if (!of) return NONE;
  if (!kept.has(of)) {
    kept.set(of, of.kind === "names" ? Array.from(of.values, (at) => of.names[at] ?? "") : Array.from(of.values));
  }
  return kept.get(of);
}

export const sum = (values) => values.reduce((all, value) => all + value, 0);
export const mean = (values) => sum(values) / values.length;
export const most = (values) => values.reduce((best, value) => (value > best ? value : best), -Infinity);
export const least = (values) => values.reduce((best, value) => (value < best ? value : best), Infinity);
export const rising = (values) => Float64Array.from(values).sort();
export const places = (values, chosen) => values.flatMap((value, at) => (chosen(value, at) ? [at] : []));

// Between order statistics, as numpy does it.
export function quantile(sorted, share) {
  if (!sorted.length) return NaN;
  const at = (sorted.length - 1) * share, below = Math.floor(at), part = at - below;
  const [low, high] = [sorted[below], sorted[Math.min(below + 1, sorted.length - 1)]];
  return part < 0.5 ? low + (high - low) * part : high - (high - low) * (1 - part);
}

// `count` whole numbers from 0 to `last` at even distances.
export function evenly(last, count) {
  const step = last / (count - 1);
  return Array.from({ length: count }, (_, at) => (at === count - 1 ? Math.trunc(last) : Math.trunc(at * step)));
}

// The first place in sorted values that is not below one.
export function firstNotBelow(sorted, value) {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1; else high = middle;
  }
  return low;
}

// As Python says numbers: halves go to even digits.
export const fixed = (value, digits) => value.toLocaleString("en", {
  minimumFractionDigits: digits, maximumFractionDigits: digits, roundingMode: "halfEven",
});
export const whole = (value) => fixed(value, 0);
export const percent = (share, digits) => `${fixed(100 * share, digits)}%`;
// With about three digits.
export const said = (value) => (Number.isFinite(value) ? fixed(value, value >= 100 ? 0 : value >= 10 ? 1 : 2) : "–");
