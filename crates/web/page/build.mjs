// Makes the page: `node build.mjs ENGINE PACKAGES OUT`, which are the folder of the WebAssembly, that of npm's
// packages, and the one to write. `make web` calls it.
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { EXAMPLES, FILES, SCENES } from "./src/scenes.js";

const here = dirname(fileURLToPath(import.meta.url)), root = resolve(here, "../../..");
const [engine, packages, out] = process.argv.slice(2).map((path) => resolve(path));
// What draws packets over time, here and in the page that `clearway view` writes.
const viewer = join(root, "python/clearway/_viewer");
const { buildSync, build } = createRequire(join(packages, "package.json"))("esbuild");

const common = {
  bundle: true, minify: true, format: "iife", target: ["chrome111", "firefox115", "safari16.4"], write: false,
  nodePaths: [join(packages, "node_modules")], logLevel: "warning", legalComments: "none",
  alias: { clearway: viewer },
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
const contents = `export const WORKER = ${JSON.stringify(worker)}, SHIPPED = ${JSON.stringify(shipped)};`;
const given = {
  name: "shipped",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^shipped$/ }, ({ path }) => ({ path, namespace: "shipped" }));
    onLoad({ filter: /.*/, namespace: "shipped" }, () => ({ contents }));
  },
};
const app = bundled(await build({ ...common, entryPoints: [join(here, "src/app.js")], plugins: [given] }));

mkdirSync(out, { recursive: true });
writeFileSync(join(out, "app.js"), app);
const code = gzipSync(readFileSync(join(engine, "clearway_web_bg.wasm")), { level: 9 });
writeFileSync(join(out, "engine.js"), `clearwayEngine("${code.toString("base64")}");\n`);
copyFileSync(join(here, "index.html"), join(out, "index.html"));
const styles = [join(here, "style.css"), join(viewer, "viewer.css")].map((path) => readFileSync(path, "utf8"));
writeFileSync(join(out, "style.css"), styles.join(""));
// Their licences ask that they go along.
const locked = JSON.parse(readFileSync(join(packages, "package-lock.json"), "utf8")).packages;
const bundledPackages = Object.entries(locked).filter(([path, { dev }]) => path && !dev).map(([path]) => path);
const licences = bundledPackages.map((path) => `${path}\n\n${readFileSync(join(packages, path, "LICENSE"), "utf8")}`);
writeFileSync(join(out, "licences.txt"), licences.join("\n\n"));
const sizes = [app.length, code.length].map((bytes) => `${(bytes / 1e6).toFixed(2)} MB`);
console.log(`page ${sizes[0]}, engine ${sizes[1]} compressed: ${join(out, "index.html")}`);
