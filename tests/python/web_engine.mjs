// Runs scenarios with the engine that `make web` has built, under node: `node web_engine.mjs ENGINE` reads JSON from its
// input, `{ files: {path: text}, scenarios: {name: text} }`, and writes the digest and the speed of each, or why it was
// refused.
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const folder = resolve(process.argv[2]);
const engine = await import(pathToFileURL(join(folder, "clearway_web.js")));
const { files, scenarios } = JSON.parse(readFileSync(0, "utf8"));
const module = new WebAssembly.Module(readFileSync(join(folder, "clearway_web_bg.wasm")));
engine.initSync({ module });
for (const [path, text] of Object.entries(files)) engine.file(path, new TextEncoder().encode(text));
const found = {};
for (const [name, text] of Object.entries(scenarios)) {
  const began = performance.now();
  let run;
  try { run = new engine.Run(text, "packet", 2 ** 31, 1000); } catch (error) {
    found[name] = { refused: String(error) };
    continue;
  }
  while (run.step(50, { tell() {} })[0] === 0);
  const info = JSON.parse(run.conclude().info());
  found[name] = { digest: info.digest, packet_hops: info.packet_hops, seconds: (performance.now() - began) / 1e3 };
}
console.log(JSON.stringify(found));
