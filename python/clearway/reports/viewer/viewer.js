// The viewer: a picture of the fabric at a time, its clock, and the story of one packet. Several views may stand side by
// side on one clock, a panel each. All text is set as text.
import { Curves } from "clearway/curves.js";
import { unpacked } from "clearway/format.js";
import { History, above } from "clearway/history.js";
import { Picture } from "clearway/picture.js";
import { linkSaid, nowSaid, storyOf, us } from "clearway/story.js";

// Most of a control for the time, and samples of the curve above it.
const STEPS = 10_000, SAMPLES = 300;
// So many seconds a loss is to be seen.
const LOSS_SECONDS = 0.5;
// The slowest, in simulated picoseconds a second; and at first so many seconds for a packet's way along a link.
const SLOWEST = 1e3, LINK_SECONDS = 0.35;
// At first the whole takes no longer than this, and data moves no later.
const WHOLE_SECONDS = 50, DATA_SECONDS = 2.5;
// Kinds that the legend names.
const KINDS = 10;

// An element of this kind, the last of its parent.
export function element(parent, tag, text, attributes = {}) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  parent.append(made);
  return made;
}

// The kinds of packets of several runs: data first, then the most frequent.
function kindsOf(histories) {
  const counts = new Map();
  for (const { kindNames, kindCounts } of histories) {
    kindNames.forEach((name, at) => counts.set(name, (counts.get(name) ?? 0) + kindCounts[at]));
  }
  const [data, ...others] = [...counts];
  others.sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  const kinds = [data[0], ...others.map(([name]) => name)];
  for (const history of histories) history.kindPlace = history.kindNames.map((name) => kinds.indexOf(name));
  return kinds;
}

export class Viewer {
  // `colours` are those of the views' names, where there is more than one.
  constructor(parent, views, colours = []) {
    this.panels = views.map((view, at) => ({ view, history: new History(view), colour: colours[at] ?? "" }));
    [{ view: this.view, history: this.history }] = this.panels;
    const every = this.panels.map(({ history }) => history);
    this.begin = Math.min(...every.map(({ begin }) => begin));
    this.end = Math.max(...every.map(({ end }) => end));
    this.times = every.length === 1 ? this.history.times
      : Float64Array.from(new Set(every.flatMap(({ times }) => [...times]))).sort();
    const longest = Math.max(...every.map(({ longestQueue }) => longestQueue));
    for (const history of every) history.longestQueue = longest;
    this.kinds = kindsOf(every);
    this.time = this.begin;
    this.node = this.chosen = -1;
    // The panel whose packet is chosen.
    this.chosenIn = this.panels[0];
    // Names of kinds.
    this.hidden = new Set();
    // Which of the loops that were begun is under way; 0 while none is.
    this.playing = this.begun = 0;
    this.root = element(parent, "div", undefined, { class: "cw-view" });
    this.root.viewer = this;
    for (const note of this.notes()) element(this.root, "p", note, { class: "cw-note" });
    this.controls();
    this.stage();
    this.clock();
    this.told = element(this.root, "section", undefined, { class: "cw-story", "aria-label": "Story", "aria-live": "polite" });
    if (every.some(({ samples, hasPauses }) => samples.times.length && hasPauses)) {
      const seek = (time) => { this.pause(); this.seek(time); };
      this.curves = new Curves(this.root, this.panels, { begin: this.begin, end: this.end, seek });
    }
    this.legend();
    this.tell(-1);
    for (const panel of this.panels) panel.picture = new Picture(panel.canvas, panel.history);
    [{ picture: this.picture, canvas: this.canvas }] = this.panels;
    this.watch();
    this.speedOf(Math.log10(this.speed0()));
    this.fit();
  }

  notes() {
    const said = this.panels.flatMap(({ view: { partial, notes } }) => [
      ...notes, ...(partial ? ["Only some packets were recorded: queues and ways show these alone."] : []),
    ]);
    return [...new Set(said)];
  }

  // At first a packet's way along a link takes a moment, unless there is too much to see.
  speed0() {
    const { history } = this, some = [], whole = this.end - this.begin;
    // Of samples alone the whole in about twelve seconds.
    if (history.isSampled) return Math.max(whole / 12, SLOWEST);
    const data = Math.max(...this.panels.map((one) => one.history.firstData));
    const stride = Math.max(1, Math.floor(history.rows / 1000));
    for (let row = 0; row < history.rows; row += stride) {
      const spent = history.arrive[row] - history.time_ps[row];
      if (spent > 0) some.push(spent);
    }
    some.sort((a, b) => a - b);
    const link = (some[some.length >> 1] ?? 1e6) / LINK_SECONDS;
    return Math.max(link, whole / WHOLE_SECONDS, (data - this.begin) / DATA_SECONDS, SLOWEST);
  }

  controls() {
    const bar = element(this.root, "div", undefined, { class: "cw-bar" });
    const button = (text, label, title, does) => {
      const made = element(bar, "button", text, { type: "button", "aria-label": label, title });
      made.addEventListener("click", does);
      return made;
    };
    button("‹ back", "‹ back one event", "One event back (←)", () => this.step(-1));
    this.button = button("▶", "Play", "Play or pause (space)", () => (this.playing ? this.pause() : this.play()));
    button("on ›", "on › one event", "One event on (→)", () => this.step(1));
    const speed = element(bar, "label", "Speed ", { class: "cw-speed" });
    const most = Math.log10(Math.max((this.end - this.begin) / 4, 100 * SLOWEST));
    this.slider = element(speed, "input", undefined, {
      type: "range", min: Math.log10(SLOWEST), max: most, step: 0.05, title: "Slow motion (−) or faster (+)",
    });
    this.slider.addEventListener("input", () => this.speedOf(Number(this.slider.value)));
    this.speedSaid = element(speed, "output");
    const where = element(bar, "label", "Look at ");
    const title = "The whole fabric, or one switch and its queues (Esc: whole)";
    this.where = element(where, "select", undefined, { title });
    element(this.where, "option", "the whole fabric", { value: -1 });
    const { names, hosts } = this.history.fabric;
    names.forEach((name, node) => { if (node >= hosts) element(this.where, "option", name, { value: node }); });
    names.forEach((name, node) => { if (node < hosts) element(this.where, "option", name, { value: node }); });
    this.where.addEventListener("change", () => this.zoom(Number(this.where.value)));
    if (this.history.isSampled) return;
    button("Next packet", "Next packet", "Choose the next packet that is to be seen (N)", () => this.nextPacket());
  }

  stage() {
    const stage = element(this.root, "div", undefined, { class: "cw-panels" });
    for (const panel of this.panels) {
      const place = element(stage, "div", undefined, { class: "cw-panel" });
      if (this.panels.length > 1) {
        const title = element(place, "h3");
        element(title, "span", undefined, { class: "cw-of" }).style.background = panel.colour;
        title.append(panel.view.name);
      }
      this.canvasOf(panel, place);
      panel.now = element(place, "p", "", { class: "cw-now" });
    }
  }

  canvasOf(panel, place) {
    const about = `The fabric${this.panels.length > 1 ? ` of ${panel.view.name}` : ""} with its packets and queues.`;
    const canvas = (panel.canvas = element(place, "canvas", undefined, {
      tabindex: 0, role: "application",
      "aria-label": `${about} Space plays, arrows go from event to event, N chooses a packet, plus and minus change the `
        + "speed, Escape shows the whole fabric.",
    }));
    canvas.addEventListener("click", (event) => this.click(event, panel));
    canvas.addEventListener("mousemove", ({ offsetX, offsetY }) => {
      canvas.style.cursor = panel.picture.at(offsetX, offsetY) ? "pointer" : "default";
      const link = panel.picture.linkAt(offsetX, offsetY);
      canvas.title = link >= 0 ? linkSaid(panel.history, link, this.time) : "";
    });
  }

  clock() {
    const clock = element(this.root, "div", undefined, { class: "cw-clock" });
    this.curve = element(clock, "canvas", undefined, { "aria-hidden": true, title: "Bytes in all queues over time" });
    const within = { type: "range", min: 0, max: STEPS, step: 1, "aria-label": "Time" };
    this.scrubber = element(clock, "input", undefined, within);
    this.scrubber.addEventListener("input", () => {
      const { begin, end } = this;
      this.pause();
      this.seek(begin + ((end - begin) * Number(this.scrubber.value)) / STEPS);
    });
    this.output = element(clock, "output");
  }

  legend() {
    const list = element(this.root, "ul", undefined, { class: "cw-legend", "aria-label": "What is drawn" });
    const every = this.panels.map(({ history }) => history);
    const countOf = (name) => every.map((one) => one.kindCounts[one.kindNames.indexOf(name)] ?? 0);
    this.kinds.slice(0, KINDS).forEach((name, kind) => {
      const counts = countOf(name);
      if (!counts.some(Boolean)) return;
      const button = element(element(list, "li"), "button", undefined, {
        type: "button", "aria-pressed": true, title: "Show or hide", "data-kind": name,
      });
      const mark = kind === 0 ? "cw-dot" : `cw-diamond cw-kind-${(kind - 1) % 8}`, { tenants } = this.view;
      element(button, "span", undefined, { class: mark, "aria-hidden": true });
      const words = kind ? name : `data, one colour per ${tenants.length ? "tenant" : "flow"}`;
      button.append(`${words} (${counts.map((count) => count.toLocaleString("en")).join(" | ")})`);
      button.addEventListener("click", () => {
        if (!this.hidden.delete(name)) this.hidden.add(name);
        button.setAttribute("aria-pressed", !this.hidden.has(name));
        this.show();
      });
    });
    this.view.tenants.forEach(([name], at) => {
      const item = element(list, "li");
      element(item, "span", undefined, { class: `cw-tenant cw-colour-${at % 8}`, "aria-hidden": true });
      item.append(name);
    });
    const marks = [["cw-queue", "queue at its port"]];
    if (every.some(({ hasPauses }) => hasPauses)) marks.push(["cw-stop", "told to hold back, thick if a whole class"]);
    if (every.some(({ samples }) => samples.times.length)) {
      marks.push(["cw-root", "root of congestion"], ["cw-innocent", "innocent share of a held queue"]);
    }
    if (every.some(({ lostRows }) => lostRows.length)) marks.push(["cw-lost", "lost"]);
    for (const [name, words] of marks) {
      const item = element(list, "li");
      element(item, "span", name === "cw-lost" ? "✕" : undefined, { class: name, "aria-hidden": true });
      item.append(words);
    }
  }

  watch() {
    this.sized = new ResizeObserver(() => { if (this.root.clientWidth !== this.width) this.fit(); });
    this.sized.observe(this.root);
    // The page outlives its viewers, and would keep each whose listener it has.
    this.gone = new AbortController();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      for (const { picture } of this.panels) picture.dress();
      this.fit();
    }, { signal: this.gone.signal });
    this.root.addEventListener("keydown", (event) => this.key(event));
  }

  // Leaves the page.
  close() {
    this.pause();
    this.sized.disconnect();
    this.gone.abort();
    this.root.remove();
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const onCanvas = this.panels.some(({ canvas }) => event.target === canvas);
    const does = {
      " ": onCanvas && (() => (this.playing ? this.pause() : this.play())),
      ArrowRight: onCanvas && (() => this.step(1)),
      ArrowLeft: onCanvas && (() => this.step(-1)),
      Home: onCanvas && (() => this.seek(this.begin)),
      End: onCanvas && (() => this.seek(this.end)),
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
    const width = (this.width = this.root.clientWidth);
    if (!width) return;
    const ratio = globalThis.devicePixelRatio || 1;
    for (const { canvas, picture } of this.panels) {
      // With what stands around it, and others below it, it fits the window.
      const room = globalThis.innerHeight * (canvas.clientWidth < 600 ? 0.27 : 0.44);
      const height = Math.round(Math.max(200, Math.min(room, canvas.clientWidth * 0.6)));
      canvas.style.height = `${height}px`;
      picture.fit(canvas.clientWidth, height, ratio);
    }
    this.drawCurve(ratio);
    this.curves?.fit(ratio);
    this.show();
  }

  drawCurve(ratio) {
    const { begin, end } = this, { clientWidth: wide, clientHeight: high } = this.curve;
    this.profiles ??= this.panels.map(({ history }) => history.profile(begin, end, SAMPLES));
    const most = Math.max(1, ...this.profiles.flat()), pen = this.curve.getContext("2d");
    this.curve.width = Math.round(wide * ratio);
    this.curve.height = Math.round(high * ratio);
    pen.scale(ratio, ratio);
    this.profiles.forEach((profile, of) => {
      pen.beginPath();
      pen.moveTo(0, high);
      profile.forEach((bytes, at) => pen.lineTo((wide * (at + 0.5)) / SAMPLES, high - 1 - ((high - 2) * bytes) / most));
      pen.lineTo(wide, high);
      pen.fillStyle = this.picture.theme.queue;
      pen.strokeStyle = this.panels[of].colour;
      pen.lineWidth = 1.5;
      if (this.panels.length > 1) pen.stroke(); else pen.fill();
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
    if (this.time >= this.end) this.time = this.begin;
    const token = (this.playing = this.begun += 1), run = { last: undefined };
    this.button.textContent = "❚❚";
    this.button.setAttribute("aria-label", "Pause");
    const frame = (now) => {
      if (this.playing !== token || !this.root.isConnected) return;
      // Whoever comes back to a page that was hidden does not want to have missed anything.
      const spent = Math.min(0.1, (now - (run.last ?? now)) / 1000);
      run.last = now;
      this.time = Math.min(this.time + spent * this.speed, this.end);
      this.show();
      if (this.time >= this.end) this.pause(); else requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }

  pause() {
    this.playing = 0;
    this.button.textContent = "▶";
    this.button.setAttribute("aria-label", "Play");
  }

  // To the next or last time at which a packet comes or goes.
  step(by) {
    this.pause();
    const { times } = this, at = above(times, this.time);
    const next = by > 0 ? at : at - (times[at - 1] === this.time ? 2 : 1);
    this.seek(times[Math.min(Math.max(next, 0), times.length - 1)]);
  }

  seek(time) {
    this.time = Math.min(Math.max(time, this.begin), this.end);
    this.show();
  }

  show() {
    if (!this.picture?.layout) return;
    const { begin, end, time, node, hidden } = this;
    for (const panel of this.panels) {
      const { picture, history, view, now } = panel, chosen = panel === this.chosenIn ? this.chosen : -1;
      // A node is told by its name: another fabric may lack it.
      const here = node < 0 ? -1 : history.fabric.place.get(this.history.fabric.names[node]) ?? -1;
      picture.draw({ time, node: here, chosen, hidden, span: this.speed * LOSS_SECONDS });
      now.textContent = nowSaid(history, time);
      if (this.panels.length > 1 && time > view.end_ps) now.textContent = "This run is over.";
    }
    this.curves?.draw(time, this.picture.theme);
    this.scrubber.value = Math.round((STEPS * (time - begin)) / (end - begin || 1));
    this.output.textContent = us(time);
    this.scrubber.setAttribute("aria-valuetext", us(time));
  }

  zoom(node) {
    this.node = node;
    this.where.value = node;
    this.show();
  }

  click({ offsetX, offsetY }, panel) {
    const { picture, history } = panel, found = picture.at(offsetX, offsetY), rows = picture.rowsAt(offsetX, offsetY);
    // Another click at the same place chooses the next of those that lie on each other there.
    const now = panel === this.chosenIn ? rows.indexOf(this.chosen) : -1;
    const node = found && this.history.fabric.place.get(history.fabric.names[found.node]);
    if (rows.length) this.choose(rows[(now + 1) % rows.length], panel);
    else if (node !== undefined && node !== null) this.zoom(node === this.node ? -1 : node);
    else this.choose(-1);
  }

  // Of the packets that are drawn the one after the chosen, in the order of rows.
  nextPacket() {
    const { picture, history } = this.chosenIn;
    const rows = [...new Set(picture.marks.map(([, , row]) => row))].sort((a, b) => a - b);
    if (!rows.length) return this.step(1);
    const way = new Set(this.chosen >= 0 ? history.way(this.chosen) : []);
    const now = rows.findIndex((row) => way.has(row));
    this.pause();
    this.choose(rows[(now + 1) % rows.length]);
  }

  choose(row, panel = this.chosenIn) {
    this.chosen = row;
    this.chosenIn = panel;
    this.tell(row);
    this.show();
  }

  // Takes over where a viewer of the same run was: its rows are the first ones here.
  follow({ time, speed, node, chosen, chosenIn, panels, hidden }) {
    this.speedOf(Math.log10(speed));
    for (const button of this.root.querySelectorAll(".cw-legend button")) {
      if (hidden.has(button.dataset.kind)) button.click();
    }
    this.zoom(node);
    this.choose(chosen, this.panels[panels.indexOf(chosenIn)]);
    this.seek(time);
  }

  // The story of a packet. Each line leads to its time.
  tell(row) {
    this.told.replaceChildren();
    if (row < 0) {
      const hint = this.history.isBare ? "Run it to see its packets." : this.history.isSampled ? "Click a switch for its queues; point at a link for what waits there."
        : "Click a packet for its story, a switch for its queues.";
      element(this.told, "p", hint, { class: "cw-hint" });
      return;
    }
    const { history, view } = this.chosenIn, { title, about, lines, total } = storyOf(history, row);
    element(this.told, "h3", this.panels.length > 1 ? `${title}, ${view.name}` : title);
    for (const one of about) element(this.told, "p", one);
    const list = element(this.told, "ol");
    for (const [time, text] of lines) {
      const item = element(list, "li");
      const button = element(item, "button", us(time), { type: "button", title: "Go there" });
      button.addEventListener("click", () => { this.pause(); this.seek(time); });
      element(item, "span", text);
    }
    element(this.told, "p", total);
  }
}

// Empties an element in which there may be a viewer.
export function clear(parent) {
  for (const { viewer } of [...parent.children]) viewer?.close();
  parent.replaceChildren();
}

// Shows views side by side, and lets them play unless the reader wants little motion; or as `before`, a viewer of the same
// runs when they had come less far.
export function mount(parent, views, { before = null, colours = [] } = {}) {
  const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
  // Who has seen all that there was wants to see what follows.
  const goesOn = before ? before.playing || before.time >= before.end : true;
  const hasFocus = before && before.canvas === document.activeElement;
  clear(parent);
  const viewer = new Viewer(parent, views, colours);
  if (before) viewer.follow(before);
  if (hasFocus) viewer.canvas.focus({ preventScroll: true });
  if (goesOn && !isStill) viewer.play();
  return viewer;
}

// Shows views of samples side by side, at the moment with the most innocent bytes, or at the time that the page's
// address asks for, in microseconds: `#t=1200`.
export function mountTogether(parent, views, colours) {
  clear(parent);
  const viewer = new Viewer(parent, views, colours);
  const most = (history) => Math.max(0, ...history.curves().innocent);
  const { history } = viewer.panels.reduce((best, one) => (most(one.history) > most(best.history) ? one : best));
  const asked = () => /[#&]t=([\d.]+)/.exec(location.hash)?.[1];
  const follow = () => { viewer.pause(); viewer.seek(Number(asked()) * 1e6); };
  viewer.seek(history.worst);
  addEventListener("hashchange", () => { if (asked()) follow(); });
  if (asked()) follow();
  return viewer;
}

// The bytes of a packed view, which a page holds compressed and in base64.
async function bytesOf(words) {
  const bytes = Uint8Array.from(atob(words), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

export const mountPacked = async (parent, words) => mount(parent, [unpacked(await bytesOf(words))]);

// `packed` are views as a page holds them, `colours` those of their names.
export async function mountPackedTogether(parent, packed, colours) {
  const every = await Promise.all(packed.map(bytesOf));
  return mountTogether(parent, every.map(unpacked), colours);
}
