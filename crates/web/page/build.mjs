// Makes the page: `node build.mjs ENGINE PACKAGES OUT`, which are the folder of the WebAssembly, that of npm's
// packages, and the one to write. `make web` calls it.
import { copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { EXAMPLES, FILES, LESSONS } from "./src/scenes.js";

const here = dirname(fileURLToPath(import.meta.url)), root = resolve(here, "../../..");
const [engine, packages, out] = process.argv.slice(2).map((path) => resolve(path));
// The drawing of packets over time, here and in the page that `clearway view` writes.
const viewer = join(root, "python/clearway/reports/viewer");
const python = join(root, "python/clearway/reports");
const require = createRequire(join(packages, "package.json"));
const { buildSync, build } = require("esbuild"), { parse } = require("smol-toml"), { lexer } = require("marked");

// A lesson is Markdown under a head in TOML.
const SCENES = LESSONS.map((id) => {
  const [, head, body] = readFileSync(join(root, `crates/web/scenes/${id}.md`), "utf8").split(/^\+\+\+$/m);
  const { title, scenario: file, change, slider, prediction: predictions = [] } = parse(head);
  const tokens = lexer(body).filter(({ type }) => type !== "space").map(({ type, text, tokens: inner }) => ({
    type, text, tokens: inner.map(({ type: kind, text: words, href }) => ({ type: kind, text: words.replaceAll("\n", " "), href })),
  }));
  return { id, title, file, change, slider, predictions, tokens };
});

const common = {
  bundle: true, minify: true, format: "iife", target: ["chrome111", "firefox115", "safari16.4"], write: false,
  nodePaths: [join(packages, "node_modules")], logLevel: "warning", legalComments: "none",
  alias: { clearway: viewer, "clearway-explorer": join(python, "explorer.js") },
};
const bundled = ({ outputFiles: [{ text }] }) => text;

const worker = bundled(buildSync({
  ...common,
  entryPoints: [join(here, "src/worker.js")],
  alias: { ...common.alias, engine: join(engine, "clearway_web.js") },
  // Its own way to load the engine, which the page does not take.
  define: { "import.meta.url": '""' },
}));

const paths = [...[...SCENES, ...EXAMPLES].map(({ file }) => file), ...Object.values(FILES)];
const shipped = Object.fromEntries(paths.map((path) => [path, readFileSync(join(root, path), "utf8")]));
// The fabric of each, which the page shows before it has an engine.
const { fabricViewOf } = await import(pathToFileURL(join(viewer, "format.js")));
const { Run, file: hand, initSync } = await import(pathToFileURL(join(engine, "clearway_web.js")));
initSync({ module: new WebAssembly.Module(readFileSync(join(engine, "clearway_web_bg.wasm"))) });
for (const [name, path] of Object.entries(FILES)) hand(name, new TextEncoder().encode(shipped[path]));

function fabricOf(path) {
  const begun = new Run(shipped[path], "packet", 2 ** 31, 0).so_far(), found = {};
  JSON.parse(begun.described()).forEach(({ name, rows, columns }, table) => {
    if (name !== "links" && name !== "flows") return;
    const values = (kind, at) => Array.from(kind === "numbers" ? begun.numbers(table, at) : begun.whole(table, at));
    const of = columns.map(({ name: column, kind, names }, at) => [column, { kind, names, values: values(kind, at) }]);
    found[name] = { rows: name === "links" ? rows : 0, columns: Object.fromEntries(of) };
  });
  return fabricViewOf({ info: { end_ps: 0 }, tables: found }, parse(begun.scenario()));
}
// A view's columns have arrays of their own type, which JSON has not.
const plain = (_, value) => (ArrayBuffer.isView(value) ? Array.from(value) : value);
const fabrics = {};
for (const { file } of [...SCENES, ...EXAMPLES]) {
  const view = fabricOf(file);
  // A picture of more would tell nothing, and weigh more than the page.
  if (view.tables.links.rows <= 1000) fabrics[file] = view;
}
// The words of reports and the looks of their charts, as Python reads them. The page may not evaluate text, so
// functions are code.
const spec = parse(readFileSync(join(python, "report_spec.toml"), "utf8"));
const ticks = Object.entries(spec.ticks).map(([name, body]) => `${name}: (tick) => { ${body} }`);
const contents = {
  shipped: `export const WORKER = ${JSON.stringify(worker)}, SHIPPED = ${JSON.stringify(shipped)};
    export const SCENES = ${JSON.stringify(SCENES)};
    export const FABRICS = ${JSON.stringify(fabrics, plain)};`,
  spec: `export const SPEC = ${JSON.stringify(spec)}, TICKS = { ${ticks.join(", ")} };`,
};
const given = {
  name: "given",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^(shipped|spec)$/ }, ({ path }) => ({ path, namespace: "given" }));
    onLoad({ filter: /.*/, namespace: "given" }, ({ path }) => ({ contents: contents[path] }));
  },
};
const app = bundled(await build({ ...common, entryPoints: [join(here, "src/app.js")], plugins: [given] }));

mkdirSync(out, { recursive: true });
writeFileSync(join(out, "app.js"), app);
// As reports have it, with what builds charts.
const bokeh = ["bokeh", "bokeh-api"].map((name) => join(packages, `node_modules/@bokeh/bokehjs/build/js/${name}.min.js`));
writeFileSync(join(out, "bokeh.js"), bokeh.map((path) => readFileSync(path, "utf8")).join("\n"));
const code = gzipSync(readFileSync(join(engine, "clearway_web_bg.wasm")), { level: 9 });
writeFileSync(join(out, "engine.js"), `clearwayEngine("${code.toString("base64")}");\n`);
copyFileSync(join(here, "index.html"), join(out, "index.html"));
const sheets = [join(here, "style.css"), join(python, "report.css"), join(viewer, "viewer.css")];
const styles = sheets.map((path) => readFileSync(path, "utf8"));
writeFileSync(join(out, "style.css"), styles.join(""));
// Their licences ask that they go along.
const locked = JSON.parse(readFileSync(join(packages, "package-lock.json"), "utf8")).packages;
const bundledPackages = Object.entries(locked).filter(([path, { dev, peer }]) => path && !dev && !peer);
const licences = bundledPackages.map(([path, { license }]) => {
  const files = existsSync(join(packages, path)) ? readdirSync(join(packages, path)) : [];
  const texts = files.filter((name) => /^(licen[cs]e|copying|notice)/i.test(name));
  const text = texts.map((name) => readFileSync(join(packages, path, name), "utf8")).join("\n\n");
  return `${path}\n\n${text || license}`;
});
writeFileSync(join(out, "licences.txt"), licences.join("\n\n"));
const sizes = [app.length, code.length].map((bytes) => `${(bytes / 1e6).toFixed(2)} MB`);
console.log(`page ${sizes[0]}, engine ${sizes[1]} compressed: ${join(out, "index.html")}`);
