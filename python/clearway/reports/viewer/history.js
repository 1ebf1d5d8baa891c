// What a view's rows say of any time: packets on links and in queues, each packet's way, pauses, roots of congestion.
import { COLUMNS } from "clearway/format.js";
import { fabricOf } from "clearway/layout.js";

// A view of samples alone has no packets.
const NOTHING = { kind: "numbers", names: [], values: new Float64Array(0) };
const NO_PACKETS = { rows: 0, columns: Object.fromEntries(COLUMNS.packets.map((name) => [name, NOTHING])) };
// What follows the last sample in which anything is held or waits.
const ROOM = 1.02;

// The first of `sorted` from which on all are above `value`.
export function above(sorted, value, low = 0, high = sorted.length) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= value) low = middle + 1; else high = middle;
  }
  return low;
}

// What a frame of a flow control pauses or lets go on: `[what, is it a pause]`; null of any other. As in `results/packets.py`.
export function pauseOf(says) {
  const merged = /^Merge old (node \d+, port \d+, class \d+)/.exec(says);
  if (merged) return [`root ${merged[1]}`, false];
  const [kind] = says.split(" ", 1), rest = says.slice(kind.length + 1);
  if (kind === "Pause" || kind === "Resume") return [rest.split(", distance")[0], kind === "Pause"];
  let found = /classes (\d+), pause (\d+)/.exec(says);
  if (found) return [`classes ${found[1]}`, found[2] !== "0"];
  found = /queue (\d+), pause (true|false)/.exec(says);
  if (found) return [`queue ${found[1]}`, found[2] === "true"];
  return kind === "Isolate" || kind === "Release" ? [rest, kind === "Isolate"] : null;
}

export class History {
  constructor(view) {
    this.view = view;
    this.fabric = fabricOf(view);
    const { columns, rows } = view.tables.packets ?? NO_PACKETS;
    // Whether queues and pauses are known from samples alone.
    this.isSampled = !view.tables.packets;
    // Whether there is a fabric alone.
    this.isBare = this.isSampled && !view.tables.congestion;
    this.rows = rows;
    for (const name in columns) if (columns[name].kind === "numbers") this[name] = columns[name].values;
    this.columns = columns;
    const placeOf = (of) => Uint32Array.from(of.values, (at) => this.fabric.place.get(of.names[at]) ?? 2 ** 32 - 1);
    this.node = placeOf(columns.node);
    this.to = placeOf(columns.to_node);
    this.lost = columns.lost.values.map((at) => (columns.lost.names[at] ? 1 : 0));
    // When each packet is at the next node.
    this.arrive = Float64Array.from(this.last_ps, (last, row) => last + (this.fabric.delays[this.link[row]] ?? 0));
    const own = new Set(view.tables.flows.columns.transport.names);
    const made = columns.transport;
    this.isFrame = (row) => Number.isNaN(this.flow[row]) && !this.lost[row] && !own.has(made.names[made.values[row]]);
    this.flowRow = new Map(Array.from(view.tables.flows.columns.flow.values, (flow, row) => [flow, row]));
    this.bytesMost = this.bytes.reduce((most, one) => Math.max(most, one), 1);
    this.byLink();
    this.ways();
    this.kinds();
    this.pauses();
    this.congestion();
    this.totals();
    if (this.isSampled) this.sampled();
    this.begin = rows ? this.time_ps[0] : 0;
    this.end = this.isSampled ? this.busyUntil : this.times.at(-1) ?? view.end_ps;
  }

  // The place of a packet's tenant among all; none without tenants.
  tenantOf(row) {
    const { tenants } = this.view, place = tenants.length ? this.flowRow.get(this.flow[row]) : undefined;
    if (place === undefined) return null;
    const { names, values } = this.view.tables.flows.columns.class, at = tenants.findIndex(([, some]) => some.includes(names[values[place]]));
    return at < 0 ? null : at;
  }

  word(name, row) {
    const { names, values } = this.columns[name];
    return names[values[row]];
  }

  // By link: its rows in the order in which they left, and bytes that had come and left by each time.
  byLink() {
    const every = this.fabric.ends.map(() => []);
    for (let row = 0; row < this.rows; row++) if (!this.lost[row]) every[this.link[row]]?.push(row);
    this.links = every.map((rows) => {
      const waited = rows.filter((row) => this.time_ps[row] > this.came_ps[row]);
      const counted = (order, when) => {
        const times = Float64Array.from(order, (row) => when[row]), bytes = new Float64Array(order.length + 1);
        order.forEach((row, at) => { bytes[at + 1] = bytes[at] + this.bytes[row]; });
        return { times, bytes };
      };
      const came = [...waited].sort((a, b) => this.came_ps[a] - this.came_ps[b]);
      return {
        rows, times: Float64Array.from(rows, (row) => this.time_ps[row]), waited, order: came,
        came: counted(came, this.came_ps), left: counted(waited, this.time_ps),
      };
    });
    this.lostRows = [];
    for (let row = 0; row < this.rows; row++) if (this.lost[row]) this.lostRows.push(row);
  }

  // Bytes that wait for a link.
  waiting(link, time) {
    if (this.isSampled) return this.congestedAt(time).get(link)?.bytes ?? 0;
    const { came, left } = this.links[link];
    return came.bytes[above(came.times, time)] - left.bytes[above(left.times, time)];
  }

  // Their packets, the next to leave first.
  queued(link, time) {
    const { waited, came, left } = this.links[link], found = [], gone = above(left.times, time);
    // Of those that leave later some come later, too.
    const count = above(came.times, time) - gone;
    for (let at = gone; found.length < count; at++) if (this.came_ps[waited[at]] <= time) found.push(waited[at]);
    return found;
  }

  // Rows of packets on a link.
  flying(link, time) {
    const { rows, times } = this.links[link], found = [];
    for (let at = above(times, time) - 1; at >= 0 && this.arrive[rows[at]] > time; at--) found.push(rows[at]);
    return found;
  }

  // The row of each packet's next hop, and of the one before: it says the same, from where it had gone to.
  ways() {
    const under = new Map(), { columns } = this;
    this.next = new Int32Array(this.rows).fill(-1);
    this.before = new Int32Array(this.rows).fill(-1);
    for (let row = 0; row < this.rows; row++) {
      if (this.isFrame(row)) continue;
      const what = `${this.flow[row]}|${columns.says.values[row]}|${columns.source.values[row]}`
        + `|${columns.destination.values[row]}|${columns.transport.values[row]}`;
      // A packet that is lost at a node may have been counted there or not.
      for (const hop of this.lost[row] ? [this.hop[row] - 1, this.hop[row]] : [this.hop[row] - 1]) {
        const one = under.get(`${what}|${this.node[row]}|${hop}`)?.shift();
        if (one === undefined) continue;
        this.next[one] = row;
        this.before[row] = one;
        break;
      }
      if (this.lost[row]) continue;
      const key = `${what}|${this.to[row]}|${this.hop[row]}`, open = under.get(key);
      if (open) open.push(row); else under.set(key, [row]);
    }
  }

  // All rows of a packet.
  way(row) {
    let first = row;
    while (this.before[first] >= 0) first = this.before[first];
    const rows = [first];
    while (this.next[rows.at(-1)] >= 0) rows.push(this.next[rows.at(-1)]);
    return rows;
  }

  // Kinds of packets: data, and control packets by the first word of what they say; the most frequent first.
  kinds() {
    const counts = new Map(), { says } = this.columns;
    const words = says.names.map((name) => /^[A-Za-z_-]+/.exec(name)?.[0] ?? "");
    const kindOf = (row) => (this.payload_bytes[row] > 0 ? "data"
      : words[says.values[row]] || this.word("transport", row));
    const every = Array.from({ length: this.rows }, (_, row) => kindOf(row));
    for (const kind of every) counts.set(kind, (counts.get(kind) ?? 0) + 1);
    const others = [...counts].filter(([kind]) => kind !== "data");
    const sorted = others.sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
    this.kindNames = ["data", ...sorted.map(([kind]) => kind)];
    this.kindCounts = this.kindNames.map((kind) => counts.get(kind) ?? 0);
    const place = new Map(this.kindNames.map((kind, at) => [kind, at]));
    this.kind = Uint16Array.from(every, (kind) => place.get(kind));
  }

  // Pyrrha's roots, a node's number and a port's, as the links that they are. As in `results/packets.py`.
  named(says) {
    const { names, hosts, leaving, ends, place } = this.fabric, { from_node: from } = this.view.tables.links.columns;
    // Numbered as in the table of links: switches first.
    this.numbered ??= [...from.names.filter((name) => place.get(name) >= hosts), ...names.slice(0, hosts)];
    return says.replace(/\bnode (\d+), port (\d+)/g, (said, node, port) => {
      const name = this.numbered[node], link = leaving[place.get(name)]?.[port];
      return link === undefined ? said : `${name}-${names[ends[link][1]]}`;
    });
  }

  // What nodes were told to hold back: by link, from when to when. A frame is told when it has arrived.
  pauses() {
    const begun = new Map(), back = new Map(this.fabric.ends.map(([from, to], link) => [`${from} ${to}`, link]));
    this.held = [];
    for (let row = 0; row < this.rows; row++) {
      if (!this.isFrame(row)) continue;
      const found = pauseOf(this.word("says", row));
      if (!found) continue;
      const [what, isPause] = found, key = `${this.to[row]} ${this.node[row]} ${what}`;
      const from = this.arrive[row], link = back.get(`${this.to[row]} ${this.node[row]}`);
      if (isPause) {
        const whole = what.startsWith("classes");
        if (!begun.has(key)) begun.set(key, { link, what: this.named(what), from, to: Infinity, whole });
      } else if (begun.has(key)) {
        this.held.push({ ...begun.get(key), to: from });
        begun.delete(key);
      }
    }
    this.held.push(...begun.values());
    this.held = this.held.filter(({ link }) => link !== undefined);
    this.held.sort((a, b) => a.from - b.from);
    this.heldFrom = Float64Array.from(this.held, ({ from }) => from);
    // The latest end of all until there, so that a look back knows where to stop.
    let latest = -Infinity;
    this.heldUntil = Float64Array.from(this.held, ({ to }) => (latest = Math.max(latest, to)));
  }

  heldAt(time) {
    if (this.isSampled) {
      return [...this.congestedAt(time)].filter(([, { held }]) => held)
        .map(([link, { causes, whole }]) => ({ link, what: [...causes].join("; "), whole }));
    }
    const found = [];
    for (let at = above(this.heldFrom, time) - 1; at >= 0 && this.heldUntil[at] > time; at--) {
      if (this.held[at].to > time) found.push(this.held[at]);
    }
    return found;
  }

  // Samples of hotspots, roots and innocent bytes: by time, a list of rows.
  congestion() {
    const table = this.view.tables.congestion;
    this.samples = { times: new Float64Array(0), first: [] };
    if (!table?.rows) return;
    const times = table.columns.time_ps.values, first = [];
    for (let row = 0; row < table.rows; row++) if (!row || times[row] !== times[row - 1]) first.push(row);
    this.samples = { times: Float64Array.from(first, (row) => times[row]), first: [...first, table.rows] };
    const { times: sampled } = this.samples;
    this.sampleStep = sampled.reduce((least, time, at) => (at ? Math.min(least, time - sampled[at - 1]) : least), Infinity);
  }

  // The number of the sample that a time has; -1 if there is none.
  sampleAt(time) {
    const { times } = this.samples, at = above(times, time) - 1;
    // A sample without rows is not in the table.
    return at >= 0 && time - times[at] < this.sampleStep * 1.5 ? at : -1;
  }

  // By link: `{ root, hot, held, whole, causes, bytes, innocent }`, as of the last sample.
  congestedAt(time) {
    return this.congestedIn(this.sampleAt(time));
  }

  congestedIn(at) {
    if (this.known?.at === at) return this.known.found;
    const found = new Map(), { first } = this.samples;
    this.known = { at, found };
    if (at < 0) return found;
    const { link, role, cause, paused, bytes, innocent_bytes: innocent } = this.view.tables.congestion.columns;
    for (let row = first[at]; row < first[at + 1]; row++) {
      const what = role.names[role.values[row]], why = cause.names[cause.values[row]];
      let of = found.get(link.values[row]);
      if (!of) {
        of = { root: false, hot: false, held: false, whole: false, causes: new Set(), bytes: 0, innocent: 0, heldBytes: 0 };
        found.set(link.values[row], of);
      }
      of.root ||= what === "root";
      of.hot ||= what === "hotspot";
      of.bytes += bytes.values[row];
      of.innocent += innocent.values[row];
      if (!paused.values[row]) continue;
      of.held = true;
      of.whole ||= why.startsWith("class");
      of.causes.add(why);
      of.heldBytes += bytes.values[row];
    }
    return found;
  }

  // Bytes that pauses hold, and of these innocent ones, in each sample: `{ times, held, innocent }`.
  curves() {
    if (this.drawn) return this.drawn;
    const { times } = this.samples, held = new Float64Array(times.length), innocent = new Float64Array(times.length);
    times.forEach((_, at) => {
      for (const of of this.congestedIn(at).values()) { held[at] += of.heldBytes; innocent[at] += of.innocent; }
    });
    return (this.drawn = { times, held, innocent });
  }

  // What a view of samples alone has of what packets tell otherwise.
  sampled() {
    const { times } = this.samples;
    this.times = times;
    this.busyUntil = 0;
    times.forEach((time, at) => {
      for (const { bytes, held } of this.congestedIn(at).values()) {
        this.longestQueue = Math.max(this.longestQueue, bytes);
        if (bytes > 0 || held) this.busyUntil = time;
      }
    });
    this.busyUntil = Math.min(this.view.end_ps, this.busyUntil * ROOM);
  }

  // When most innocent bytes are held; the first time of all where none ever is.
  get worst() {
    const { times, innocent } = this.curves();
    const at = innocent.reduce((best, one, here) => (one > innocent[best] ? here : best), 0);
    return times[at] ?? this.begin;
  }

  get hasPauses() {
    return this.held.length > 0 || this.curves().held.some((bytes) => bytes > 0);
  }

  // Times at which something happens, and the bytes that wait in the whole network from each change on.
  totals() {
    const every = new Float64Array(3 * this.rows);
    let size = 0;
    for (let row = 0; row < this.rows; row++) {
      every[size++] = this.time_ps[row];
      if (this.lost[row]) continue;
      if (this.came_ps[row] < this.time_ps[row]) every[size++] = this.came_ps[row];
      every[size++] = this.arrive[row];
    }
    const sorted = every.subarray(0, size).sort();
    let kept = 0;
    for (let at = 0; at < size; at++) if (!kept || sorted[at] !== sorted[kept - 1]) sorted[kept++] = sorted[at];
    this.times = sorted.slice(0, kept);
    this.longestQueue = this.longest()?.bytes ?? 0;
  }

  // When the first packet of data leaves; the begin where there is none.
  get firstData() {
    const row = this.kindCounts[0] ? this.kind.indexOf(0) : -1;
    return row < 0 ? this.begin : this.time_ps[row];
  }

  // When most bytes wait for one link, and the packet that comes to them then: `{ time, row }`; null if nothing waits.
  longest() {
    let best = null, most = 0;
    for (const { came, left, order } of this.links) {
      for (let at = 0, gone = 0; at < order.length; at++) {
        while (gone < left.times.length && left.times[gone] <= came.times[at]) gone++;
        const bytes = came.bytes[at + 1] - left.bytes[gone];
        if (bytes > most) [best, most] = [{ time: came.times[at], row: order[at] }, bytes];
      }
    }
    return best && { ...best, bytes: most };
  }

  // All bytes that wait, at each of `count` times between two.
  profile(from, to, count) {
    return Array.from({ length: count }, (_, at) => {
      const time = from + ((at + 0.5) * (to - from)) / count;
      if (this.isSampled) return [...this.congestedAt(time).values()].reduce((all, { bytes }) => all + bytes, 0);
      return this.links.reduce((all, { waited }, link) => (waited.length ? all + this.waiting(link, time) : all), 0);
    });
  }
}
