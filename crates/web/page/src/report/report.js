// The report of a run, as `reports/report.py` makes pages of results: the same sections, tables and charts of the same tables.
// All that a scenario says is set as text.
import "clearway-explorer";
import { parse } from "smol-toml";
import { SPEC } from "spec";
import * as charts from "./charts.js";
import { column, mean, percent, places, quantile, rising, said, sum, whole } from "./columns.js";
import { choices, charts as flowCharts, facts, flowsOf } from "./explorer.js";
import * as jobs from "./jobs.js";
import { lookOf } from "./looks.js";
import { SIZES, SPENT, goodput, sizesOf, split } from "./points.js";

const { said: SAID, tables: HEADS } = SPEC;
const filled = (text, of) => text.replace(/\{(\w+)\}/g, (_, key) => of[key]);
const PS = { ps: 1, ns: 1e3, us: 1e6, "µs": 1e6, ms: 1e9, s: 1e12 };
// Keys that make a link worse without a failure.
const WORSE = { rate: "rate", loss: "loss", bit_error_rate: "bit error rate" };

function element(parent, tag, text, attributes = {}) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  parent?.append(made);
  return made;
}

// A table whose first `words` columns are words and the others numbers.
function table(parent, head, rows, words) {
  const made = element(parent, "table"), top = element(element(made, "thead"), "tr"), body = element(made, "tbody");
  const kind = (at) => (at < words ? { class: "text" } : {});
  head.forEach((name, at) => element(top, "th", name, kind(at)));
  let before;
  for (const row of rows) {
    const line = element(body, "tr", undefined, row[0] === before ? {} : { class: "first" });
    row.forEach((cell, at) => element(line, "td", at === 0 && cell === before ? "" : String(cell), kind(at)));
    before = row[0];
  }
}

class Report {
  constructor(parent, { info, tables, scenario }) {
    this.parent = parent;
    const toml = parse(scenario);
    this.result = { info, tables, scenario: toml, name: toml.name };
    this.text = scenario;
    this.isPacket = info.level !== "flow";
    this.failures = failures(toml);
    this.document = new Bokeh.Document();
    this.places = [];
  }

  section(title, fill) {
    const id = title.toLowerCase().replace(/[^a-z0-9]+/g, "-");
    const made = element(null, "section", undefined, { id });
    element(made, "h2", title);
    fill(made);
    if (made.children.length > 1) this.parent.append(made);
  }

  // Charts side by side, with a caption that also names their lines for readers who can't see them.
  row(parent, some, caption) {
    const figure = element(parent, "figure"), legends = some.flatMap((chart) => chart.below.filter((of) => of.items));
    const lines = [...new Set(legends.flatMap(({ items }) => items.map(({ label }) => label.value)))];
    const words = `${some.map((chart) => chart.title.text).join("; ")}. ${caption}`;
    const label = words + (lines.length ? ` Lines: ${lines.join(", ")}.` : "");
    const all = element(figure, "div", undefined, { class: "charts", role: "img", "aria-label": label });
    for (const chart of some) {
      this.places.push(element(all, "div", undefined, { class: "chart" }));
      this.document.add_root(chart);
    }
    element(figure, "figcaption", caption);
  }

  async draw() {
    const { result, failures: failed } = this;
    this.warnings();
    this.section("Summary", (to) => { this.summary(to); this.byKind(to); });
    this.section("Tenants over time", (to) => {
      if (result.tables.entities?.rows) this.row(to, charts.tenants(result, failed), SAID.entities);
    });
    this.section("Training jobs", (to) => this.jobs(to));
    if (result.info.flows_completed) {
      this.section("Slowdown by flow size", (to) => this.row(to, charts.slowdown(result), SAID.slowdown));
      this.section("Completion times", (to) => this.row(to, charts.distributions(result), SAID.distributions));
    }
    this.section("Flow by flow", (to) => this.flows(to));
    this.section("Where time went", (to) => this.spent(to));
    this.section("Guarantees", (to) => {
      if (result.tables.guarantees) this.row(to, charts.guarantees(result), SAID.guarantees);
    });
    this.section("Network over time", (to) => this.overTime(to, failed));
    this.section("Not finished", (to) => this.unfinished(to));
    this.section("Lost and marked packets", (to) => { if (this.isPacket) this.lost(to); });
    this.section("Audit", (to) => table(to, HEADS.audit, (result.info.audit ?? []).map((one) => (
      [result.name, one.ok ? "✓" : "✗ failed", one.name, one.detail]
    )), 4));
    this.section("What the transports counted", (to) => { if (this.isPacket) this.counters(to); });
    this.section("Scenario", (to) => {
      const details = element(to, "details");
      element(details, "summary", `${result.name}, every default filled in`);
      element(details, "pre", this.text);
    });
    const drawn = await Bokeh.embed.add_document_standalone(this.document, this.parent, this.places);
    if (this.hasFlows) document.dispatchEvent(new Event("clearway-charts"));
    return drawn;
  }

  warnings() {
    const { name, info, tables } = this.result, lines = [];
    if (!this.isPacket) lines.push(filled(SAID.flow_level, { name }));
    if (!tables.flows?.rows) lines.push(filled(SAID.no_flows, { name }));
    if (info.ended === "interrupted") lines.push(filled(SAID.interrupted, { name }));
    for (const warning of info.warnings ?? []) lines.push(`${name}: ${warning}`);
    for (const one of info.audit ?? []) if (!one.ok) lines.push(filled(SAID.failed, { name, finding: one.name }));
    if (!lines.length) return;
    const box = element(this.parent, "div", undefined, { class: "warning" });
    lines.forEach((line, at) => { if (at) element(box, "br"); box.append(line); });
  }

  sizes() {
    const { bdp_bytes: bdp } = this.result.info;
    return filled(SAID.sizes, { bdp: whole(bdp), eight: whole(8 * bdp) });
  }

  summary(to) {
    const { result } = this, { info, tables } = result, of = sizesOf(result), slowdown = column(tables.flows, "slowdown");
    const names = ["all", ...SIZES], made = element(to, "table", undefined, { class: "summary" });
    const head = element(made, "thead"), [top, under] = [element(head, "tr"), element(head, "tr")];
    element(top, "th", undefined, { rowspan: 2 });
    for (const name of names) {
      element(top, "th", `${name} flows`, { colspan: 2, class: "group" });
      for (const word of ["mean", "99%"]) element(element(under, "th"), "small", word);
    }
    const others = [
      ["goodput", "Gbit/s"], ["unfinished", "flows"], ["dropped", "packets"], ["sent again", "packets"],
      ["hops", "million/s"],
    ];
    for (const [name, unit] of others) {
      const cell = element(top, "th", name, { rowspan: 2 });
      element(cell, "br");
      element(cell, "small", unit);
    }
    const line = element(element(made, "tbody"), "tr"), run = element(line, "th", undefined, { class: "run" });
    const [colour] = lookOf(result);
    element(run, "span", undefined, { class: "dot" }).style.background = colour;
    run.append(result.name);
    for (const name of names) {
      const rows = places(slowdown, (value, row) => !Number.isNaN(value) && (name === "all" || of[row] === name));
      const values = rising(rows.map((row) => slowdown[row]));
      for (const value of [mean(values), quantile(values, 0.99)]) element(line, "td", said(value));
    }
    const count = (value) => (this.isPacket ? whole(value) : "–");
    const hops = this.isPacket ? said(info.packet_hops / info.wall_seconds / 1e6) : "–";
    const left = info.flows - info.flows_completed;
    const resent = sum(column(tables.flows, "resent_packets"));
    const cells = [said(goodput(result) / 1e9), whole(left), count(dropped(result)), count(resent), hops];
    for (const cell of cells) element(line, "td", cell);
    element(to, "p", filled(SAID.summary, { intervals: "", sizes: this.sizes() }), { class: "note" });
  }

  byKind(to) {
    const { result } = this, lines = split(result), slowdown = column(result.tables.flows, "slowdown");
    if (lines.length < 2) return;
    const rows = lines.map(({ name, flows }) => {
      const done = rising(flows.map((row) => slowdown[row]).filter((value) => !Number.isNaN(value)));
      const figures = [mean(done), quantile(done, 0.5), quantile(done, 0.99)].map(said);
      return [result.name, name, whole(flows.length), whole(flows.length - done.length), ...figures];
    });
    element(to, "h3", "By class and transport");
    table(to, HEADS.by_kind, rows, 2);
  }

  jobs(to) {
    const { result } = this;
    if (!result.tables.jobs) return;
    const { head, rows } = jobs.summary(result);
    table(to, head, rows, 1);
    for (const sentence of jobs.sentences(result)) element(to, "p", sentence);
    for (const job of jobs.names(result)) this.row(to, [jobs.timeline(result, job)], SAID.jobs);
  }

  flows(to) {
    const flows = flowsOf(this.result), held = flows.flow.length, every = this.result.tables.flows?.rows ?? 0;
    this.hasFlows = held > 0;
    if (!held) return;
    const filters = element(to, "div", undefined, { class: "filters", id: "filters" });
    for (const [name, words, values] of choices(flows)) {
      const choice = element(element(filters, "label", `${words} `), "select", undefined, { "data-column": name });
      element(choice, "option", `every ${words.split(" ").at(-1)}`, { value: "" });
      for (const value of values) element(choice, "option", value, { value });
    }
    element(filters, "output", undefined, { id: "counted" });
    element(to, "p", undefined, { id: "group", class: "note", "aria-live": "polite" });
    const [size, start, shares] = flowCharts(this.result, flows, this.failures);
    const sampled = held < every ? filled(SAID.sampled, { held: whole(held), every: whole(every) }) : "";
    this.row(to, [size, start], filled(SAID.flows, { sampled }));
    this.row(to, [shares], SAID.shares);
    element(to, "div", undefined, { id: "flow", class: "flow", "aria-live": "polite" });
    element(to, "table", undefined, { id: "slowest", class: "slowest" });
    document.getElementById("explorer-data")?.remove();
    const data = element(document.head, "script", undefined, { type: "application/json", id: "explorer-data" });
    data.textContent = JSON.stringify(facts(this.result));
  }

  spent(to) {
    if (!this.isPacket) return;
    const legend = element(to, "div", undefined, { class: "legend" });
    for (const [, words, colour] of SPENT) {
      const one = element(legend, "span");
      element(one, "span", undefined, { class: "dot" }).style.background = colour;
      one.append(words);
    }
    this.row(to, charts.whereTimeWent(this.result), filled(SAID.spent, { sizes: this.sizes() }));
  }

  overTime(to, failed) {
    const { result } = this, { utilisation, queues } = result.tables;
    if (utilisation?.rows) this.row(to, charts.utilisations(result, failed), SAID.utilisation);
    if (queues?.rows) this.row(to, charts.longestQueues(result, failed), SAID.queues);
    if (to.children.length < 2) element(to, "p", SAID.no_samples);
  }

  unfinished(to) {
    const { name, tables: { flows } } = this.result, groups = new Map();
    const [status, reason, bytes, flow, src, dst] = ["status", "reason", "bytes", "flow", "src", "dst"]
      .map((of) => column(flows, of));
    status.forEach((how, row) => {
      if (how === "completed") return;
      const key = JSON.stringify([how, reason[row]]);
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(row);
    });
    if (!groups.size) { element(to, "p", SAID.unfinished); return; }
    const rows = [...groups].sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, of]) => {
      const examples = of.slice(0, 3).map((row) => `${flow[row]} (${src[row]} → ${dst[row]})`).join(", ");
      return [name, ...JSON.parse(key), examples, whole(of.length), whole(sum(of.map((row) => bytes[row])))];
    });
    table(to, HEADS.unfinished, rows, 4);
  }

  // Losses by cause and tier of the link, with packets that were trimmed, marked, or damaged and went on.
  lost(to) {
    const { name, tables: { links, aqs } } = this.result, rows = [], tier = column(links, "tier");
    const aqDropped = sum(column(aqs, "dropped_packets"));
    if (aqDropped) {
      const came = aqDropped + sum(column(aqs, "passed_packets"));
      rows.push([name, "dropped by an AQ", "-", whole(aqDropped), percent(aqDropped / came, 3)]);
    }
    for (const [cause, words] of Object.entries(SPEC.lost)) {
      for (const one of ["from_host", "up", "down", "to_host"]) {
        const of = places(tier, (where) => where === one);
        const total = (key) => { const values = column(links, key); return sum(of.map((row) => values[row])); };
        const packets = total(`${cause}_packets`);
        if (!packets) continue;
        const share = percent(packets / Math.max(1, total("sent_packets")), 3);
        rows.push([name, words, one.replace("_", " "), whole(packets), share]);
      }
    }
    if (rows.length) table(to, HEADS.lost, rows, 3); else element(to, "p", SAID.lost);
  }

  counters(to) {
    const { name, tables: { counters } } = this.result;
    const [transport, counter, value] = ["transport", "counter", "value"].map((of) => column(counters, of));
    const rows = places(value, (one) => one).map((row) => (
      [name, transport[row], counter[row].replaceAll("_", " "), whole(value[row])]
    ));
    if (rows.length) table(to, HEADS.counters, rows, 3);
  }
}

// When something fails or gets worse and when it ends: `[ms, words]`.
function failures(scenario) {
  const found = new Map(), ms = (time) => { const [, size, unit] = /^([\d.]+)\s*(\S+)$/.exec(time); return size * PS[unit] / 1e9; };
  for (const failure of scenario.failure ?? []) {
    const where = failure.switch ?? (failure.link ?? []).join(" – ");
    const worse = Object.entries(WORSE).flatMap(([key, words]) => (key in failure ? [`${words} ${failure[key]}`] : []));
    const how = worse.join(", ") || ("flap" in failure ? "flaps" : "down");
    const add = (time, words) => found.set(JSON.stringify([time, words]), [time, words]);
    add(ms(failure.at), `${where}: ${how}`);
    if ("until" in failure) add(ms(failure.until), `${where}: as before`);
  }
  return [...found.values()];
}

// Packets lost, for whatever reason.
function dropped({ tables: { links, aqs } }) {
  const causes = ["overflow", "dead", "unroutable", "expired", "lossy", "corrupted"];
  return sum(causes.map((cause) => sum(column(links, `${cause}_packets`)))) + sum(column(aqs, "dropped_packets"));
}

let before = null, listening = new AbortController();

// Bokeh's plots listen to the visual viewport and never stop, which would keep each of them as long as the page.
function leave() {
  before?.clear();
  before = null;
  listening.abort();
  listening = new AbortController();
  const { signal } = listening, { addEventListener } = EventTarget.prototype;
  visualViewport.addEventListener = (kind, does) => addEventListener.call(visualViewport, kind, does, { signal });
  Bokeh.documents.splice(0);
}

// Replaces the report in an element. Bokeh is there by then.
export async function report(parent, result) {
  leave();
  parent.replaceChildren();
  before = await new Report(parent, result).draw();
}
