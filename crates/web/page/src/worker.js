// Runs scenarios beside the page. It computes in steps, and between two steps it hears whether it is to stop.
import { Run, check, file, initSync, schema, version } from "engine";

const STEP_MS = 60;
// A run that takes longer is shown while it goes on, and again each time that it has taken twice as long.
const SHOWN_MS = 1500;
// The data of the picture.
const PICTURE = new Set(["links", "flows", "packets", "congestion"]);
let stopping = false;

const post = (kind, more = {}, transfer = []) => self.postMessage({ kind, ...more }, transfer);
const breath = () => new Promise((done) => {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => { port1.close(); done(); };
  port2.postMessage(0);
});

// The engine's own error, or what a browser says when it has no more memory.
function wrong(error, memoryMax) {
  if (typeof error === "string") {
    try { return JSON.parse(error); } catch { return { line: null, key: "", message: error }; }
  }
  const said = String(error?.message ?? error);
  const isMemory = error instanceof RangeError || /unreachable|memory|out of bounds/i.test(said);
  const message = isMemory
    ? `it needs more memory than a page has (${Math.round(memoryMax / 2 ** 20)} MB): take a smaller fabric, fewer `
      + "flows or fewer recorded packets, or run it with the clearway command"
    : `the engine failed: ${said}`;
  return { line: null, key: "", message };
}

// Tables as columns, whose memory goes to the page: all, or those that are `wanted`.
function columns(tables, wanted) {
  const found = {}, transfer = [];
  JSON.parse(tables.described()).forEach(({ name, rows, columns: described }, table) => {
    if (wanted && !wanted.has(name)) return;
    const of = {};
    described.forEach(({ name: column, kind, names, doc, unit }, at) => {
      const values = kind === "numbers" ? tables.numbers(table, at) : tables.whole(table, at);
      transfer.push(values.buffer);
      of[column] = { kind, values, names, doc, unit };
    });
    found[name] = { rows, columns: of };
  });
  return [found, transfer];
}

// Shows what a run has given until now. Whether there will be more to show.
function show(under, packetsMax) {
  const tables = under.so_far();
  if (!tables) return false;
  const [found, transfer] = columns(tables, PICTURE);
  post("shown", { info: JSON.parse(tables.info()), tables: found, scenario: tables.scenario() }, transfer);
  tables.free();
  return found.packets?.rows < packetsMax;
}

async function run({ text, level, memoryMax, packetsMax }) {
  stopping = false;
  const began = performance.now();
  let under, next = packetsMax > 0 && level === "packet" ? began + SHOWN_MS : Infinity;
  try {
    under = new Run(text, level, memoryMax, packetsMax);
    let at;
    do {
      at = under.step(STEP_MS, { tell: (now) => post("progress", { at: now }) });
      post("progress", { at });
      if (at[0] !== 0) continue;
      const now = performance.now();
      if (now >= next) next = show(under, packetsMax) ? now + (now - began) : Infinity;
      await breath();
    } while (at[0] === 0 && !stopping);
    const tables = under.conclude();
    if (!tables) throw new Error("there is no result");
    const [found, transfer] = columns(tables);
    const info = JSON.parse(tables.info());
    info.wall_seconds = (performance.now() - began) / 1e3;
    post("result", { info, tables: found, scenario: tables.scenario(), full: at[0] === 2 }, transfer);
  } catch (error) {
    post("wrong", { error: wrong(error, memoryMax) });
  }
}

self.onmessage = ({ data }) => {
  if (data.kind === "engine") {
    try {
      initSync({ module: data.module });
      for (const [path, content] of Object.entries(data.files)) file(path, new TextEncoder().encode(content));
      post("ready", { version: version(), schema: schema() });
    } catch (error) { post("wrong", { error: wrong(error, 0) }); }
  } else if (data.kind === "check") {
    let said;
    try { said = JSON.parse(check(data.text)); } catch (error) { said = { name: "", error: wrong(error, 0) }; }
    post("checked", { said, number: data.number });
  } else if (data.kind === "run") run(data);
  else if (data.kind === "stop") stopping = true;
};
