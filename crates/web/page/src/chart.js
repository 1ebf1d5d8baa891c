// Charts as SVG: lines on linear or logarithmic axes. All text is set as text.
import { number } from "./numbers.js";

const WIDE = 440, HIGH = 250, LEFT = 52, RIGHT = 12, TOP = 8, BOTTOM = 38;
// Points that a line is drawn with.
const POINTS_MAX = 600;
const COLOURS = 8;

function shape(parent, tag, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

// A scale from values to places, and its ticks.
function axis(values, isLog, [from, to], top) {
  let low = Infinity, high = -Infinity;
  for (const value of values) if (!isLog || value > 0) { low = Math.min(low, value); high = Math.max(high, value); }
  if (!Number.isFinite(low)) { low = 1; high = 2; }
  const ticks = [];
  if (isLog) {
    const room = high / low < 1.5 ? 1.5 : 1.15;
    low /= room;
    high *= room;
    const steps = high / low > 1e3 ? [1] : [1, 2, 5];
    for (let ten = 10 ** Math.floor(Math.log10(low)); ten <= high; ten *= 10) {
      for (const step of steps) if (ten * step >= low * 0.999 && ten * step <= high * 1.001) ticks.push(ten * step);
    }
    const length = Math.log(high / low);
    return { place: (value) => from + ((to - from) * Math.log(Math.max(value, low) / low)) / length, ticks };
  }
  low = Math.min(low, 0);
  high = top ?? (high > low ? high * 1.05 : low + 1);
  const rough = (high - low) / 5, ten = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((one) => one * ten >= rough) * ten;
  for (let at = Math.ceil(low / step) * step; at <= high * 1.0001; at += step) ticks.push(at);
  return { place: (value) => from + ((to - from) * (value - low)) / (high - low), ticks };
}

function thinned(points) {
  if (points.length <= POINTS_MAX) return points;
  // Of each stretch the highest, so that no peak is lost.
  const step = points.length / POINTS_MAX;
  return Array.from({ length: POINTS_MAX }, (_, at) => (
    points.slice(Math.floor(at * step), Math.floor((at + 1) * step))
      .reduce((best, one) => (one[1] > best[1] ? one : best))
  ));
}

export function draw(parent, { title, x, y, lines, logX, logY, top, sayX = (value) => number(value) }) {
  const figure = document.createElement("figure");
  const caption = document.createElement("figcaption");
  caption.textContent = title;
  const svg = shape(figure, "svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-label": title });
  figure.prepend(caption);
  const across = axis(lines.flatMap((line) => line.points.map(([at]) => at)), logX, [LEFT, WIDE - RIGHT]);
  const up = axis(lines.flatMap((line) => line.points.map(([, at]) => at)), logY, [HIGH - BOTTOM, TOP], top);
  for (const tick of across.ticks) {
    const at = across.place(tick);
    shape(svg, "line", { x1: at, x2: at, y1: TOP, y2: HIGH - BOTTOM, class: "grid" });
    shape(svg, "text", { x: at, y: HIGH - BOTTOM + 14, "text-anchor": "middle" }, sayX(tick));
  }
  for (const tick of up.ticks) {
    const at = up.place(tick);
    shape(svg, "line", { x1: LEFT, x2: WIDE - RIGHT, y1: at, y2: at, class: "grid" });
    shape(svg, "text", { x: LEFT - 6, y: at + 4, "text-anchor": "end" }, number(tick));
  }
  shape(svg, "text", { x: (LEFT + WIDE) / 2, y: HIGH - 6, "text-anchor": "middle" }, x);
  shape(svg, "text", { transform: `translate(11 ${(HIGH - BOTTOM) / 2}) rotate(-90)`, "text-anchor": "middle" }, y);
  const legend = document.createElement("ul"), colours = new Map();
  for (const { name, points, dashed, marks, like } of lines) {
    if (!colours.has(like ?? name)) colours.set(like ?? name, colours.size % COLOURS);
    const colour = `line-${colours.get(like ?? name)}${dashed ? " dashed" : ""}`;
    const some = thinned(points);
    const path = some.map(([a, b], at) => `${at ? "L" : "M"}${across.place(a).toFixed(1)} ${up.place(b).toFixed(1)}`);
    shape(svg, "path", { d: path.join(""), class: colour });
    for (const [a, b] of marks ? some : []) {
      const mark = shape(svg, "circle", { cx: across.place(a), cy: up.place(b), r: 3.5, class: colour });
      shape(mark, "title", {}, `${name}: ${sayX(a)}, ${number(b)}`);
    }
    if (lines.length > 1) {
      const item = document.createElement("li");
      const sample = shape(item, "svg", { width: 22, height: 8, "aria-hidden": true });
      shape(sample, "path", { d: "M0 4H22", class: colour });
      item.append(name);
      legend.append(item);
    }
  }
  if (legend.children.length) figure.append(legend);
  parent.append(figure);
}
