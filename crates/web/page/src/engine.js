// The engine in a worker of its own. A run leaves its memory behind, so each has a new worker; the next
// one is made ready while the reader reads.
import { FILES } from "./scenes.js";
import { ROWS_MAX } from "clearway/format.js";

// Rooms for the program, its tables, and what the page makes of them; phones have less.
export const MEMORY_MAX = 2 ** 30;

const nowhere = (message) => ({ line: null, key: "", message });

export class Engine {
  // `module` promises the compiled engine, `source` is the worker's program, `shipped` has texts by their paths.
  constructor(module, source, shipped) {
    this.module = module;
    this.address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    this.files = Object.fromEntries(Object.entries(FILES).map(([name, path]) => [name, shipped[path]]));
    this.checks = new Map();
    this.number = 0;
    this.renew();
  }

  renew() {
    this.worker?.terminate();
    for (const done of this.checks.values()) done(null);
    this.checks.clear();
    const worker = (this.worker = new Worker(this.address));
    this.ready = new Promise((done, failed) => {
      worker.onmessage = ({ data }) => {
        if (data.kind === "ready") done(data);
        else if (data.kind === "checked") {
          this.checks.get(data.number)?.(data.said);
          this.checks.delete(data.number);
        } else if (this.running) this.running(data);
        else if (data.kind === "wrong") failed(new Error(data.error.message));
      };
      worker.onerror = (event) => {
        event.preventDefault();
        const error = nowhere(`the engine failed: ${event.message}`);
        if (this.running) this.running({ kind: "wrong", error });
        else failed(new Error(error.message));
      };
      this.module.then((module) => worker.postMessage({ kind: "engine", module, files: this.files }), failed);
    });
    this.ready.catch(() => {});
  }

  // The engine's answer on a text; null if it had something else to do.
  async check(text) {
    await this.ready;
    if (this.running) return null;
    const number = ++this.number;
    return new Promise((done) => {
      this.checks.set(number, done);
      this.worker.postMessage({ kind: "check", text, number });
    });
  }

  // Runs a text; with `record` the packets to draw are recorded; `told` hears of progress, `shown` gets what there is to
  // draw while a long run goes on. Gives what the worker says at the end.
  async run(text, level, record, told, shown) {
    await this.ready;
    return new Promise((done) => {
      this.stoppable = false;
      this.running = (data) => {
        if (data.kind === "progress") {
          // Flow level hears nothing before its end.
          this.stoppable = level === "packet";
          return told(data.at);
        }
        if (data.kind === "shown") return shown(data);
        this.running = null;
        this.renew();
        done(data);
      };
      const most = { memoryMax: MEMORY_MAX, packetsMax: record ? ROWS_MAX : 0 };
      this.worker.postMessage({ kind: "run", text, level, ...most });
    });
  }

  // A run of packets that has begun gives what it has; any other has nothing to give.
  stop() {
    if (this.running && this.stoppable) this.worker.postMessage({ kind: "stop" });
    else this.leave();
  }

  // Ends a run whose result is no longer wanted.
  leave() {
    this.running?.({ kind: "wrong", error: nowhere("stopped before it had a result") });
  }
}
