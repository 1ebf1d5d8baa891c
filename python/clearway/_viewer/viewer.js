// The viewer: a picture of the fabric at a time, its clock, and the story of one packet. All text is set as text.
import { unpacked } from "clearway/format.js";
import { History, above } from "clearway/history.js";
import { Picture } from "clearway/picture.js";
import { nowSaid, storyOf, us } from "clearway/story.js";

// Most of a control for the time, and samples of the curve above it.
const STEPS = 10_000, SAMPLES = 300;
// So many seconds a loss is to be seen.
const LOSS_SECONDS = 0.5;
// The slowest, in simulated picoseconds a second; and at first so many seconds for a packet's way along a link.
const SLOWEST = 1e3, LINK_SECONDS = 0.35;
// Kinds that the legend names.
const KINDS = 10;

function element(parent, tag, text, attributes = {}) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  parent.append(made);
  return made;
}

export class Viewer {
  constructor(parent, view) {
    this.view = view;
    this.history = new History(view);
    this.time = this.history.begin;
    this.node = this.chosen = -1;
    this.hidden = new Set();
    this.playing = 0;
    this.root = element(parent, "div", undefined, { class: "cw-view" });
    this.root.viewer = this;
    for (const note of this.notes()) element(this.root, "p", note, { class: "cw-note" });
    this.controls();
    this.stage();
    this.clock();
    this.now = element(this.root, "p", "", { class: "cw-now" });
    this.legend();
    this.told = element(this.root, "section", undefined, { class: "cw-story", "aria-live": "polite" });
    this.tell(-1);
    this.picture = new Picture(this.canvas, this.history);
    this.watch();
    this.speedOf(Math.log10(this.speed0()));
    this.fit();
  }

  notes() {
    const { partial, notes } = this.view;
    return [...notes, ...(partial ? ["Only some packets were recorded: queues and ways show these alone."] : [])];
  }

  // At first a packet's way along a link takes a moment.
  speed0() {
    const { history } = this, some = [];
    const stride = Math.max(1, Math.floor(history.rows / 1000));
    for (let row = 0; row < history.rows; row += stride) {
      const spent = history.arrive[row] - history.time_ps[row];
      if (spent > 0) some.push(spent);
    }
    some.sort((a, b) => a - b);
    return Math.max((some[some.length >> 1] ?? 1e6) / LINK_SECONDS, SLOWEST);
  }

  controls() {
    const bar = element(this.root, "div", undefined, { class: "cw-bar" });
    const button = (text, label, title, does) => {
      const made = element(bar, "button", text, { type: "button", "aria-label": label, title });
      made.addEventListener("click", does);
      return made;
    };
    button("‹ step", "One event back", "One event back (←)", () => this.step(-1));
    this.button = button("▶", "Play", "Play or pause (space)", () => (this.playing ? this.pause() : this.play()));
    button("step ›", "One event on", "One event on (→)", () => this.step(1));
    const speed = element(bar, "label", "Speed ", { class: "cw-speed" });
    const most = Math.log10(Math.max((this.history.end - this.history.begin) / 4, 100 * SLOWEST));
    this.slider = element(speed, "input", undefined, {
      type: "range", min: Math.log10(SLOWEST), max: most, step: 0.05, title: "Slow motion (−) or faster (+)",
    });
    this.slider.addEventListener("input", () => this.speedOf(Number(this.slider.value)));
    this.speedSaid = element(speed, "output");
    const where = element(bar, "label", "Look at ");
    this.where = element(where, "select", undefined, { title: "The whole fabric, or one switch and its queues (Esc: whole)" });
    element(this.where, "option", "the whole fabric", { value: -1 });
    const { names, hosts } = this.history.fabric;
    names.forEach((name, node) => { if (node >= hosts) element(this.where, "option", name, { value: node }); });
    names.forEach((name, node) => { if (node < hosts) element(this.where, "option", name, { value: node }); });
    this.where.addEventListener("change", () => this.zoom(Number(this.where.value)));
    button("Next packet", "Choose the next packet", "Choose the next packet that is to be seen (N)", () => this.nextPacket());
  }

  stage() {
    this.canvas = element(this.root, "canvas", undefined, {
      tabindex: 0, role: "application",
      "aria-label": "The fabric with its packets and queues. Space plays, arrows go from event to event, N chooses a "
        + "packet, plus and minus change the speed, Escape shows the whole fabric.",
    });
    this.canvas.addEventListener("click", (event) => this.click(event));
    this.canvas.addEventListener("mousemove", ({ offsetX, offsetY }) => {
      this.canvas.style.cursor = this.picture.at(offsetX, offsetY) ? "pointer" : "default";
    });
  }

  clock() {
    const clock = element(this.root, "div", undefined, { class: "cw-clock" });
    this.curve = element(clock, "canvas", undefined, { "aria-hidden": true, title: "Bytes in all queues over time" });
    this.scrubber = element(clock, "input", undefined, { type: "range", min: 0, max: STEPS, step: 1, "aria-label": "Time" });
    this.scrubber.addEventListener("input", () => {
      const { begin, end } = this.history;
      this.pause();
      this.seek(begin + ((end - begin) * Number(this.scrubber.value)) / STEPS);
    });
    this.output = element(clock, "output");
  }

  legend() {
    const list = element(this.root, "ul", undefined, { class: "cw-legend", "aria-label": "Kinds of packets" });
    const { kindNames, kindCounts, held, samples } = this.history;
    kindNames.slice(0, KINDS).forEach((name, kind) => {
      if (!kindCounts[kind]) return;
      const button = element(element(list, "li"), "button", undefined, {
        type: "button", "aria-pressed": true, title: "Show or hide",
      });
      const mark = kind === 0 ? "cw-dot" : `cw-diamond cw-colour-${(kind - 1) % 8}`;
      element(button, "span", undefined, { class: mark, "aria-hidden": true });
      const words = kind === 0 ? "data, a colour a flow" : name;
      button.append(`${words} (${kindCounts[kind].toLocaleString("en")})`);
      button.addEventListener("click", () => {
        if (!this.hidden.delete(kind)) this.hidden.add(kind);
        button.setAttribute("aria-pressed", !this.hidden.has(kind));
        this.show();
      });
    });
    const marks = [["cw-queue", "queue at its port"]];
    if (held.length) marks.push(["cw-stop", "told to hold back"]);
    if (samples.times.length) marks.push(["cw-root", "root of congestion"], ["cw-innocent", "innocent share of a held queue"]);
    if (this.history.lostRows.length) marks.push(["cw-lost", "lost"]);
    for (const [name, words] of marks) {
      const item = element(list, "li");
      element(item, "span", name === "cw-lost" ? "✕" : undefined, { class: name, "aria-hidden": true });
      item.append(words);
    }
  }

  watch() {
    new ResizeObserver(() => this.fit()).observe(this.root);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { this.picture.dress(); this.fit(); });
    this.root.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const onCanvas = event.target === this.canvas;
    const does = {
      " ": onCanvas && (() => (this.playing ? this.pause() : this.play())),
      ArrowRight: onCanvas && (() => this.step(1)),
      ArrowLeft: onCanvas && (() => this.step(-1)),
      Home: onCanvas && (() => this.seek(this.history.begin)),
      End: onCanvas && (() => this.seek(this.history.end)),
      "+": () => this.speedOf(Math.log10(this.speed) + 0.25),
      "-": () => this.speedOf(Math.log10(this.speed) - 0.25),
      n: event.target !== this.where && (() => this.nextPacket()),
      Escape: () => this.zoom(-1),
    }[event.key];
    if (!does) return;
    event.preventDefault();
    does();
  }

  fit() {
    const width = this.root.clientWidth;
    if (!width) return;
    const height = Math.round(Math.min(460, Math.max(290, width * 0.45))), ratio = globalThis.devicePixelRatio || 1;
    this.canvas.style.height = `${height}px`;
    this.picture.fit(this.canvas.clientWidth, height, ratio);
    this.drawCurve(ratio);
    this.show();
  }

  drawCurve(ratio) {
    const { begin, end } = this.history, { clientWidth: wide, clientHeight: high } = this.curve;
    this.profile ??= this.history.profile(begin, end, SAMPLES);
    const most = Math.max(1, ...this.profile), pen = this.curve.getContext("2d");
    this.curve.width = Math.round(wide * ratio);
    this.curve.height = Math.round(high * ratio);
    pen.scale(ratio, ratio);
    pen.fillStyle = this.picture.theme.queue;
    this.profile.forEach((bytes, at) => {
      const tall = (high * bytes) / most;
      pen.fillRect((wide * at) / SAMPLES, high - tall, wide / SAMPLES + 0.5, tall);
    });
  }

  speedOf(power) {
    const within = Math.min(Math.max(power, Number(this.slider.min)), Number(this.slider.max));
    this.speed = 10 ** within;
    this.slider.value = within;
    const [size, unit] = [[1e12, "s"], [1e9, "ms"], [1e6, "µs"], [1e3, "ns"]].find(([least]) => this.speed >= least)
      ?? [1, "ps"];
    const said = `${(this.speed / size).toLocaleString("en", { maximumSignificantDigits: 2 })} ${unit} a second`;
    this.speedSaid.textContent = said;
    this.slider.setAttribute("aria-valuetext", said);
  }

  play() {
    if (this.time >= this.history.end) this.time = this.history.begin;
    const token = (this.playing += 1), run = { last: undefined };
    this.running = token;
    this.button.textContent = "❚❚";
    this.button.setAttribute("aria-label", "Pause");
    const frame = (now) => {
      if (this.running !== token || !this.root.isConnected) return;
      // Whoever comes back to a page that was hidden does not want to have missed anything.
      const spent = Math.min(0.1, (now - (run.last ?? now)) / 1000);
      run.last = now;
      this.time = Math.min(this.time + spent * this.speed, this.history.end);
      this.show();
      if (this.time >= this.history.end) this.pause(); else requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }

  pause() {
    this.running = this.playing = 0;
    this.button.textContent = "▶";
    this.button.setAttribute("aria-label", "Play");
  }

  // To the next or last time at which a packet comes or goes.
  step(by) {
    this.pause();
    const { times } = this.history, at = above(times, this.time);
    const next = by > 0 ? at : at - (times[at - 1] === this.time ? 2 : 1);
    this.seek(times[Math.min(Math.max(next, 0), times.length - 1)]);
  }

  seek(time) {
    this.time = Math.min(Math.max(time, this.history.begin), this.history.end);
    this.show();
  }

  show() {
    if (!this.picture?.layout) return;
    const { begin, end } = this.history, { time, node, chosen, hidden } = this;
    this.picture.draw({ time, node, chosen, hidden, span: this.speed * LOSS_SECONDS });
    this.scrubber.value = Math.round((STEPS * (time - begin)) / (end - begin || 1));
    this.output.textContent = us(time);
    this.scrubber.setAttribute("aria-valuetext", us(time));
    this.now.textContent = nowSaid(this.history, time);
  }

  zoom(node) {
    this.node = node;
    this.where.value = node;
    this.show();
  }

  click({ offsetX, offsetY }) {
    const found = this.picture.at(offsetX, offsetY);
    if (found?.row !== undefined) this.choose(found.row);
    else if (found) this.zoom(found.node === this.node ? -1 : found.node);
    else this.choose(-1);
  }

  // Of the packets that are drawn the one after the chosen, in the order of rows.
  nextPacket() {
    const rows = [...new Set(this.picture.marks.map(([, , row]) => row))].sort((a, b) => a - b);
    if (!rows.length) return this.step(1);
    const way = new Set(this.chosen >= 0 ? this.history.way(this.chosen) : []);
    const now = rows.findIndex((row) => way.has(row));
    this.pause();
    this.choose(rows[(now + 1) % rows.length]);
  }

  choose(row) {
    this.chosen = row;
    this.tell(row);
    this.show();
  }

  // The story of a packet. Each line leads to its time.
  tell(row) {
    this.told.replaceChildren();
    if (row < 0) {
      element(this.told, "p", "Click a packet for its story, a switch for its queues.", { class: "cw-hint" });
      return;
    }
    const { title, about, lines, total } = storyOf(this.history, row);
    element(this.told, "h3", title);
    for (const one of about) element(this.told, "p", one);
    const list = element(this.told, "ol");
    for (const [time, text] of lines) {
      const item = element(list, "li"), button = element(item, "button", us(time), { type: "button", title: "Go there" });
      button.addEventListener("click", () => { this.pause(); this.seek(time); });
      element(item, "span", text);
    }
    element(this.told, "p", total);
  }
}

// Shows a view, and lets it play unless the reader wants little motion.
export function mount(parent, view) {
  parent.replaceChildren();
  const viewer = new Viewer(parent, view);
  if (!matchMedia("(prefers-reduced-motion: reduce)").matches) viewer.play();
  return viewer;
}

// The same of a packed view, compressed and in base64, as a page holds it.
export async function mountPacked(parent, words) {
  const bytes = Uint8Array.from(atob(words), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return mount(parent, unpacked(await new Response(stream).arrayBuffer()));
}
