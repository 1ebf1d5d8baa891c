// The playground: a list, an editor, a run, its results, and links that hold a scenario. The text of a scenario is
// shown as text, never as markup.
import { differences, parting } from "./compare.js";
import { Editor, said } from "./editor.js";
import { Engine } from "./engine.js";
import { pack, unpack } from "./link.js";
import { filled, namesIn, number, numbersOf, time } from "./numbers.js";
import { report } from "./report/report.js";
import { EXAMPLES, SCENES } from "./scenes.js";
import { Schema } from "./schema.js";
import { SHIPPED, WORKER } from "shipped";
import { viewOf } from "clearway/format.js";
import { clear, mount } from "clearway/viewer.js";

const CHECK_MS = 250;
const parts = {};
for (const { id } of document.querySelectorAll("[id]")) parts[id] = document.getElementById(id);

// Of the pinned run and of the latest.
const COLOURS = ["#7b8790", "#1f9d8b"];
// `unread`: whether what is said is that the text can't be read.
let schema = null, current = null, checking = 0, unread = false, drawn = 0, viewer = null;
// How often the reader has gone to a scenario: what a run says that was begun before is of no use.
let shown = 0;
// Runs: `{ text, level, result, view, known }`. The pinned one is what the latest is compared with.
let pinned = null, latest = null;
// The numbers of the scene as it is shipped, of which its text speaks.
let own = null;

function element(parent, tag, text, attributes = {}) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  parent.append(made);
  return made;
}

// The compiled engine, from a script that holds it, so that the page works from a folder as well.
function load() {
  const compiled = new Promise((done, failed) => {
    globalThis.clearwayEngine = (packed) => {
      const words = atob(packed), bytes = new Uint8Array(words.length);
      for (let at = 0; at < words.length; at++) bytes[at] = words.charCodeAt(at);
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
      new Response(stream).arrayBuffer().then((code) => WebAssembly.compile(code)).then(done, failed);
    };
    const script = element(document.head, "script", undefined, { src: "engine.js" });
    script.onerror = () => failed(new Error("engine.js was not loaded"));
  });
  compiled.catch(() => {});
  return compiled;
}

// Draws charts: not needed before there is a result.
let bokeh = null;
const charts = () => (bokeh ??= new Promise((done, failed) => {
  const script = element(document.head, "script", undefined, { src: "bokeh.js" });
  script.onload = done;
  script.onerror = () => failed(new Error("bokeh.js was not loaded"));
}));

const say = (text, isWrong = false) => {
  parts.status.textContent = text;
  parts.status.classList.toggle("wrong", isWrong);
  unread = false;
};

const editor = new Editor(parts.scenario, { schema: () => schema, changed: soon, run });
const engine = new Engine(load(), WORKER, SHIPPED);
engine.ready.then((ready) => {
  schema = new Schema(ready.schema);
  parts.run.disabled = false;
  say("");
  check();
}).catch((error) => say(error.message, true));

function soon() {
  clearTimeout(checking);
  checking = setTimeout(check, CHECK_MS);
}

// The message of the reader of scenarios, at its line.
async function check() {
  const { text } = editor;
  const told = await engine.check(text).catch((error) => ({ error: { message: error.message } }));
  if (!told || text !== editor.text) return;
  editor.mark(told.error);
  if (told.error) {
    say(said(told.error), true);
    unread = true;
  } else if (unread) say("");
}

const isSame = (one, other) => one.text === other.text && one.level === other.level;
// Whether there is something to compare.
const isChanged = () => pinned && latest && !isSame(pinned, latest);

// The scene's text. A sentence that speaks of a changed run ("now.") is there with that run.
function steps() {
  parts.steps.replaceChildren();
  const isOther = latest && latest.text !== SHIPPED[current?.file];
  const now = isOther ? Object.entries(latest.known).map(([name, of]) => [`now.${name}`, of]) : [];
  const known = own && { ...own, ...Object.fromEntries(now) };
  for (const [title, ...texts] of current?.steps ?? []) {
    const text = texts.filter((one) => namesIn(one).every((name) => (known ? known[name] : !name.startsWith("now."))))
      .join(" ");
    const item = element(parts.steps, "li");
    element(item, "strong", title);
    const words = element(item, "p");
    // Text between backquotes is code.
    filled(text, known).split("`").forEach((part, at) => words.append(at % 2 ? code(part) : part));
  }
}

function code(text) {
  const made = document.createElement("code");
  made.textContent = text;
  return made;
}

function show(one) {
  engine.leave();
  shown += 1;
  current = one;
  pinned = latest = own = null;
  editor.pin(null);
  parts.compared.hidden = parts.pin.hidden = true;
  parts.title.textContent = one?.title ?? "A scenario from a link";
  for (const button of document.querySelectorAll("nav button")) {
    if (button.dataset.id === one?.id) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
  }
  steps();
  parts.results.hidden = true;
  parts.see.hidden = true;
  clear(parts.view);
  parts.run.disabled = !schema;
  parts.stop.disabled = true;
  say(schema ? "" : "Loading the engine…");
}

function open(one, runs = true) {
  show(one);
  editor.text = SHIPPED[one.file];
  parts.level.value = "packet";
  history.replaceState(null, "", `#scene=${one.id}`);
  check();
  // A scene begins with its run, to which changes are compared.
  const mine = shown;
  if (runs && SCENES.includes(one)) engine.ready.then(() => { if (mine === shown) run(); }, () => {});
}

async function run() {
  if (engine.running || parts.run.disabled) return;
  const { text } = editor, level = parts.level.value, mine = shown;
  parts.run.disabled = true;
  parts.stop.disabled = false;
  // A run of its own begins at its beginning.
  viewer = null;
  parts.bar.value = 0;
  say("Running…");
  const soFar = (result) => { if (mine === shown) see({ text, level, result, view: viewOf(result) }); };
  const told = await engine.run(text, level, parts.record.checked, progress, soFar)
    .catch((error) => ({ kind: "wrong", error: { message: error.message } }));
  // The reader has gone on to another.
  if (mine !== shown) return;
  parts.run.disabled = false;
  parts.stop.disabled = true;
  parts.bar.value = told.kind === "wrong" ? 0 : 1;
  if (told.kind === "wrong") {
    parts.results.hidden = parts.see.hidden = true;
    clear(parts.view);
    editor.mark(told.error);
    return say(said(told.error), true);
  }
  results(told, text, level);
}

function progress([, now, , ended, flows, share]) {
  parts.bar.value = share;
  say(`${number(100 * share)}%: ${time(now)} simulated, ${number(ended, 9)} of ${number(flows, 9)} flows ended`);
}

function results(result, text, level) {
  const { info } = result;
  latest = { text, level, result, view: viewOf(result), known: numbersOf(result) };
  pinned ??= latest;
  if (text === SHIPPED[current?.file] && level === "packet") own = latest.known;
  const isWhole = info.ended !== "interrupted" && !result.full;
  const hops = info.packet_hops / info.wall_seconds;
  const speed = hops ? `, ${number(hops / 1e6)} million packet-hops a second` : "";
  if (result.full) say("Stopped: the run needs more memory than a page may have. These are its results so far.", true);
  else say(`${isWhole ? "Done" : "Stopped; these are the results so far"}: ${time(info.end_ps)} simulated in `
    + `${number(info.wall_seconds)} s${speed}`);
  parts.status.dataset.hops = hops;
  performance.mark("clearway-result");
  parts.results.hidden = false;
  steps();
  see(latest);
  compare();
  parts.facts.replaceChildren();
  const failed = (info.audit ?? []).filter((finding) => !finding.ok);
  const facts = [
    ["flows", `${number(info.flows_completed, 9)} of ${number(info.flows, 9)} completed`],
    ["hosts", number(info.hosts, 9)],
    ["simulated", time(info.end_ps)],
    ["packet-hops", info.packet_hops && number(info.packet_hops, 12)],
    ["audit", info.audit && (failed.length ? failed.map((one) => one.name ?? JSON.stringify(one)).join("; ")
      : `all ${info.audit.length} checks hold`)],
    ["warnings", info.warnings?.length ? info.warnings.join("; ") : ""],
  ];
  for (const [name, value] of facts) if (value) { element(parts.facts, "dt", name); element(parts.facts, "dd", value); }
  locally(info, isWhole, text, level);
  parts.report.replaceChildren();
  const mine = (drawn += 1);
  // Another run may have ended meanwhile.
  const draw = () => (mine === drawn ? report(parts.report, result) : null);
  charts().then(draw).then(() => performance.mark("clearway-report")).catch((error) => say(error.message, true));
}

// Its packets over time, if they were recorded, beside those of the pinned run if that is another.
function see(run) {
  const { view, result } = run, isOther = pinned?.view && !isSame(pinned, run);
  parts.see.hidden = false;
  if (!view) {
    const why = result.info.level === "flow" ? "Flow level has no packets to draw."
      : "No packets were recorded: tick “record packets” and run again to see them.";
    clear(parts.view);
    element(parts.view, "p", why);
    return;
  }
  // What is shown while a run goes on, and at its end, stays where the reader has brought it.
  const views = isOther ? [{ ...pinned.view, name: "the pinned run" }, { ...view, name: "this run" }] : [view];
  viewer = mount(parts.view, views, { before: viewer, colours: COLOURS });
  // Who has edited and run stands below.
  if (parts.see.getBoundingClientRect().bottom < 0) parts.see.scrollIntoView({ block: "start" });
}

// The latest run against the pinned one: their numbers, the first packet that differs, and the lines that were changed.
function compare() {
  parts.pin.hidden = parts.compared.hidden = !isChanged();
  editor.pin(isChanged() ? pinned.text : null);
  if (!isChanged()) return;
  const body = parts.differences.tBodies[0];
  body.replaceChildren();
  for (const [words, ...cells] of differences(pinned.known, latest.known)) {
    const row = element(body, "tr");
    element(row, "th", words, { scope: "row" });
    for (const cell of cells) element(row, "td", cell);
  }
  parts.parting.replaceChildren();
  if (!pinned.view || !latest.view) return;
  const found = parting(pinned.view, latest.view);
  if (!found) { parts.parting.append("Every recorded packet is the same in both runs."); return; }
  const many = found.row.toLocaleString("en");
  parts.parting.append(found.row ? `The first ${many} recorded packets are the same in both runs; they part at `
    : "The runs differ from their first packet on, at ");
  const there = element(parts.parting, "button", time(found.time), { type: "button", title: "Go there" });
  there.addEventListener("click", () => {
    viewer.pause();
    viewer.seek(found.time);
    const [, { view }] = viewer.panels;
    if (found.row < view.tables.packets.rows) viewer.choose(found.row, viewer.panels[1]);
    parts.see.scrollIntoView({ block: "nearest" });
  });
}

function pin() {
  pinned = latest;
  viewer = null;
  see(latest);
  compare();
}

// The command that repeats the run elsewhere, and what it has to give.
function locally(info, isWhole, text, level) {
  const isShipped = current && SHIPPED[current.file] === text;
  const file = isShipped ? current.file : "scenario.toml";
  parts.command.textContent = `clearway run ${file}${level === "flow" ? " --level flow" : ""}`;
  parts.save.hidden = Boolean(isShipped);
  parts.digest.textContent = isWhole ? info.digest : "none, since the run was stopped";
}

async function link() {
  const fragment = await pack(editor.text, parts.level.value);
  history.replaceState(null, "", fragment);
  try {
    await navigator.clipboard.writeText(location.href);
    say("The link is copied; it holds the scenario.");
  } catch {
    say("The page's address is now a link that holds the scenario.");
  }
}

function save() {
  const made = document.createElement("a");
  made.href = URL.createObjectURL(new Blob([editor.text], { type: "application/toml" }));
  made.download = "scenario.toml";
  made.click();
  URL.revokeObjectURL(made.href);
}

// The request in the address. A scenario from a link is shown, and not run before the reader says so.
async function follow(isFirst) {
  let asked = null;
  try { asked = await unpack(location.hash); } catch (error) {
    open(SCENES[0], false);
    return say(error.message, true);
  }
  if (asked && "text" in asked) {
    show(null);
    editor.text = asked.text;
    parts.level.value = asked.level;
    return check();
  }
  const one = [...SCENES, ...EXAMPLES].find(({ id }) => id === asked?.scene);
  if (!asked && !isFirst) return;
  open(one ?? SCENES[0], Boolean(one) || !asked);
  if (asked?.scene && !one) say("the link names a scene that is not here", true);
}

for (const [place, some] of [[parts.scenes, SCENES], [parts.examples, EXAMPLES]]) {
  for (const one of some) {
    const button = element(element(place, "li"), "button", one.title, { type: "button", "data-id": one.id });
    button.addEventListener("click", () => open(one));
  }
}
parts.run.addEventListener("click", run);
parts.stop.addEventListener("click", () => engine.stop());
parts.link.addEventListener("click", link);
parts.pin.addEventListener("click", pin);
parts.save.addEventListener("click", save);
addEventListener("hashchange", () => follow(false));
follow(true);
