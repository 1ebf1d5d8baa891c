// The playground: a list, an editor, a run, its results, and links that hold a scenario. The text of a scenario is
// shown as text, never as markup.
import { differences, parting } from "./compare.js";
import { draftOf, keep } from "./drafts.js";
import { Editor, said } from "./editor.js";
import { Engine } from "./engine.js";
import { Lesson, momentOf } from "./lesson.js";
import { pack, unpack } from "./link.js";
import { number, numbersOf, time } from "./numbers.js";
import { report } from "./report/report.js";
import { EXAMPLES } from "./scenes.js";
import { Schema } from "./schema.js";
import { parse } from "smol-toml";
import { FABRICS, SCENES, SHIPPED, WORKER } from "shipped";
import { viewOf } from "clearway/format.js";
import { clear, element, mount } from "clearway/viewer.js";

const CHECK_MS = 250;
const parts = {};
for (const { id } of document.querySelectorAll("[id]")) parts[id] = document.getElementById(id);

// Of the pinned run and of the latest.
const COLOURS = ["#7b8790", "#1f9d8b"];
// `unread`: whether what is said is that the text can't be read.
let schema = null, current = null, checking = 0, unread = false, drawn = 0, viewer = null;
// Where the scenario is from: its address, its text there, and the text of the run that it is compared with (null: its own
// first run).
let home = "", original = "", base = null;
// The moment, packet and digest that a link asks for: see `link.js`.
let wanted = null;
// How often the reader has gone to a scenario: what a run says that was begun before is of no use.
let shown = 0;
// Runs: `{ text, level, result, view, known }`. The pinned one is what the latest is compared with.
let pinned = null, latest = null;
// The lesson of the scene, and the numbers of the scene as it is shipped, of which its text speaks.
let lesson = null, own = null;

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

const editor = new Editor(parts.scenario, { schema: () => schema, changed, run });
// Within another page the engine waits until its reader wants a run.
const isEmbedded = new URLSearchParams(location.search).has("embed");
document.documentElement.classList.toggle("embedded", isEmbedded);
let begin = null;
const asked = isEmbedded ? new Promise((done) => { begin = done; }) : Promise.resolve();
const engine = new Engine(asked.then(load), WORKER, SHIPPED);
engine.ready.then((ready) => {
  schema = new Schema(ready.schema);
  parts.run.disabled = false;
  if (!parts.status.classList.contains("wrong")) say("");
  check();
}).catch((error) => say(error.message, true));

function changed(text) {
  keep(home, text === original ? null : text);
  parts.reset.hidden = text === original;
  clearTimeout(checking);
  checking = setTimeout(check, CHECK_MS);
}

// The message of the reader of scenarios, at its line.
async function check() {
  const { text } = editor;
  if (!text) return;
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

// The lesson's text, whose words speak of the scene as it is shipped, and of the run with the lesson's change.
function tell() {
  if (!lesson) return;
  const isIts = latest && own && latest.text === changedBy(current);
  const now = isIts ? Object.entries(latest.known).map(([name, of]) => [`now.${name}`, of]) : [];
  lesson.tell(own && { ...own, ...Object.fromEntries(now) });
  lesson.move?.(editor.text);
}

const changedBy = ({ file, change: [was, is] }) => SHIPPED[file].replace(was, is);

// The page as a lesson commands it.
const ASKED = {
  seek(where) {
    const panel = viewer?.panels[0], found = panel && momentOf(panel.history, where);
    if (!found) return say("This run has no such moment, or no recorded packets.");
    viewer.pause();
    viewer.zoom(-1);
    viewer.seek(found.time);
    viewer.choose(found.row, panel);
    parts.see.scrollIntoView({ block: "nearest" });
  },
  change() {
    editor.replace(changedBy(current));
    run();
  },
  slide(key, value) {
    editor.replace(editor.text.replace(new RegExp(`\\b${key} = ("[^"]*"|[\\w.]+)`), `${key} = ${JSON.stringify(value)}`));
    run();
  },
};

// Shows a scenario: one of those that are here, or null.
function show(one, title = "A scenario from a link") {
  engine.leave();
  shown += 1;
  current = one;
  pinned = latest = own = viewer = wanted = null;
  parts.compared.hidden = parts.pin.hidden = true;
  parts.title.textContent = one?.title ?? title;
  for (const button of document.querySelectorAll("nav button")) {
    if (button.dataset.id === one?.id) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
  }
  parts.lesson.replaceChildren();
  lesson = one?.tokens ? new Lesson(parts.lesson, one, ASKED) : null;
  parts.results.hidden = true;
  parts.run.disabled = !schema;
  parts.stop.disabled = true;
  parts.bar.value = 0;
  const fabric = FABRICS[one?.file];
  parts.see.hidden = !fabric;
  clear(parts.view);
  // At once, and before there is an engine.
  if (fabric) mount(parts.view, [fabric]);
  say(schema ? "" : "Loading the engine…");
}

// Opens what an address asks for. A scene begins with its run, to which changes are compared. A text from a link is shown,
// and not run before the reader says so.
function open(request, address) {
  const one = [...SCENES, ...EXAMPLES].find(({ id }) => id === request.scene) ?? null;
  if (request.scene !== null && !one) throw new Error("the link names a scene that is not here");
  show(one);
  home = address;
  original = request.text ?? SHIPPED[one.file];
  base = request.base ?? (SCENES.includes(one) ? SHIPPED[one.file] : null);
  if (request.time !== null || request.digest !== null) wanted = request;
  editor.text = draftOf(home) ?? original;
  parts.reset.hidden = editor.text === original;
  parts.level.value = request.level;
  check();
  tell();
  poster(one);
  const isShipped = request.text === null && request.base === null && SCENES.includes(one);
  if (isShipped && !isEmbedded) begun(() => once(base, request.level));
}

// Does something as soon as there is an engine, unless the reader has gone on.
function begun(does) {
  const mine = shown;
  engine.ready.then(() => { if (mine === shown) does(); }, () => {});
}

const OPEN = { text: null, base: null, level: "packet", time: null, packet: null, panel: 0, digest: null };

function choose(one) {
  const address = `#scene=${one.id}`;
  if (location.hash !== address) history.pushState(null, "", address);
  open({ ...OPEN, scene: one.id }, address);
}

// In a page within another: what there is before the engine, which weighs more than all else.
function poster(one) {
  parts.poster.hidden = !isEmbedded;
  if (!isEmbedded) return;
  parts.poster.textContent = `▶ Run “${one?.title ?? "a scenario from a link"}”`;
  parts.whole.href = `${location.pathname}${location.hash}`;
}

// Runs what the editor has, after what it is compared with.
async function run() {
  if (engine.running || parts.run.disabled) return;
  const { text } = editor, level = parts.level.value;
  const isBase = base === null || (base === text && level === "packet");
  if (pinned || isBase || await once(base, "packet")) await once(text, level);
}

// Runs a text, and shows what it gives. Whether there is a result, and the reader is still here.
async function once(text, level) {
  const mine = shown;
  parts.run.disabled = true;
  parts.stop.disabled = false;
  editor.closeCompletion();
  // A run of its own begins at its beginning.
  viewer = null;
  parts.bar.value = 0;
  say("Running…");
  const soFar = (result) => { if (mine === shown) see({ text, level, result, view: viewed(result) }); };
  const told = await engine.run(text, level, parts.record.checked, progress, soFar)
    .catch((error) => ({ kind: "wrong", error: { message: error.message } }));
  // The reader has gone on to another.
  if (mine !== shown) return false;
  parts.run.disabled = false;
  parts.stop.disabled = true;
  parts.bar.value = told.kind === "wrong" ? 0 : 1;
  if (told.kind === "wrong") {
    parts.results.hidden = parts.see.hidden = true;
    clear(parts.view);
    editor.mark(told.error);
    say(said(told.error), true);
    return false;
  }
  results(told, text, level);
  return true;
}

const viewed = (result) => viewOf(result, parse(result.scenario));

function progress([, now, , ended, flows, share]) {
  parts.bar.value = share;
  say(`${number(100 * share)}%: ${time(now)} simulated, ${number(ended, 9)} of ${number(flows, 9)} flows ended`);
}

function results(result, text, level) {
  const { info } = result;
  latest = { text, level, result, isWhole: info.ended !== "interrupted" && !result.full, view: viewed(result),
    known: numbersOf(result) };
  pinned ??= latest;
  if (text === SHIPPED[current?.file] && level === "packet") own = latest.known;
  const { isWhole } = latest;
  const hops = info.packet_hops / info.wall_seconds;
  const speed = hops ? `, ${number(hops / 1e6)} million packet-hops a second` : "";
  if (result.full) say("Stopped: the run needs more memory than a page may have. These are its results so far.", true);
  else say(`${isWhole ? "Done" : "Stopped; these are the results so far"}: ${time(info.end_ps)} simulated in `
    + `${number(info.wall_seconds)} s${speed}`);
  parts.status.dataset.hops = hops;
  performance.mark("clearway-result");
  parts.results.hidden = false;
  tell();
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
  arrive();
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

// Makes the page's address a link to what is seen: scene, text, pinned run, moment, chosen packet.
async function link() {
  const { text } = editor, level = parts.level.value, { file, id } = current ?? {}, isScene = SCENES.includes(current);
  const isOwn = text === SHIPPED[file], implied = isScene ? SHIPPED[file] : null;
  const other = pinned && pinned.level === "packet" && pinned.text !== text && pinned.text !== implied;
  const isSeen = latest && latest.text === text && latest.level === level, isAt = isSeen && viewer;
  const chosen = isAt && viewer.chosen >= 0 ? viewer.chosen : null;
  const address = await pack({
    scene: id, level, text: isOwn ? null : text, base: other ? pinned.text : null,
    time: isAt ? Math.round(viewer.time) : null, packet: chosen,
    panel: chosen === null ? null : viewer.panels.indexOf(viewer.chosenIn),
    digest: isSeen && latest.isWhole ? latest.result.info.digest : null,
  });
  if (address !== location.hash) history.pushState(null, "", address);
  [home, original] = [address, text];
  parts.reset.hidden = true;
  try {
    await navigator.clipboard.writeText(location.href);
    say("The link is copied; it holds the scenario and what you see of it.");
  } catch {
    say("The page's address is now a link that holds the scenario and what you see of it.");
  }
}

function save() {
  const made = document.createElement("a");
  made.href = URL.createObjectURL(new Blob([editor.text], { type: "application/toml" }));
  made.download = "scenario.toml";
  made.click();
  URL.revokeObjectURL(made.href);
}

// Goes to what a link asks for, once its run is there: a moment, a packet. Says whether the run is the one that was linked.
function arrive() {
  const { text } = editor;
  if (!wanted || latest.text !== text || latest.level !== parts.level.value) return;
  const { time: moment, packet, panel, digest } = wanted, { info } = latest.result;
  wanted = null;
  if (digest !== null && latest.isWhole) {
    const isIt = digest === info.digest;
    say(isIt ? `${parts.status.textContent}. The digest is that of the link: ${digest}`
      : `The digest is ${info.digest}, and the link has ${digest}: it is from another version, or the text was changed`, !isIt);
  }
  if (!viewer || moment === null) return;
  viewer.pause();
  viewer.seek(moment);
  const at = viewer.panels[panel];
  if (at && packet !== null && packet < at.history.rows) viewer.choose(packet, at);
}

// The request in the address. A damaged one keeps its address, so that it can be put right.
async function follow() {
  const address = location.hash;
  try {
    const request = await unpack(address);
    if (request) return open(request, address);
    history.replaceState(null, "", `#scene=${SCENES[0].id}`);
    choose(SCENES[0]);
  } catch (error) {
    show(null, "A damaged link");
    [home, original, base] = [address, "", null];
    editor.text = "";
    say(error.message, true);
  }
}

for (const [place, some] of [[parts.scenes, SCENES], [parts.examples, EXAMPLES]]) {
  for (const one of some) {
    const button = element(element(place, "li"), "button", one.title, { type: "button", "data-id": one.id });
    button.addEventListener("click", () => choose(one));
  }
}
parts.run.addEventListener("click", run);
parts.stop.addEventListener("click", () => engine.stop());
parts.link.addEventListener("click", link);
parts.pin.addEventListener("click", pin);
parts.save.addEventListener("click", save);
parts.reset.addEventListener("click", () => editor.replace(original));
parts.poster.addEventListener("click", () => {
  parts.poster.hidden = true;
  say("Loading the engine…");
  begin();
  begun(run);
});
addEventListener("hashchange", follow);
follow();
