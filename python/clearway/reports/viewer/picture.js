// Draws the fabric at a time, or one node with its queues. What it has drawn it knows, so that clicks find it.
import { layOut } from "clearway/layout.js";
import { size as sizeOf } from "clearway/story.js";

const COLOURS = 8;
// A packet of the fewest bytes is drawn as large as this share of the largest one.
const LEAST = 0.5;
const THEME = ["ground", "raised", "ink", "soft", "line", "accent", "queue", "stop", "innocent", "lost"];
// A queue's bar is as long as this share of its cable when it holds the most bytes of the whole run.
const BAR = 0.45;
// Fingers are wider than marks.
const REACH = 14;

export class Picture {
  constructor(canvas, history) {
    this.canvas = canvas;
    this.pen = canvas.getContext("2d");
    this.history = history;
    this.dress();
  }

  // The page's colours, which change between light and dark.
  dress() {
    const of = getComputedStyle(this.canvas);
    this.theme = Object.fromEntries(THEME.map((name) => [name, of.getPropertyValue(`--cw-${name}`).trim() || "#888"]));
    const colours = (name) => Array.from({ length: COLOURS }, (_, at) => of.getPropertyValue(`--cw-${name}-${at}`).trim() || "#888");
    [this.colours, this.kindColours] = [colours("line"), colours("kind")];
  }

  fit(width, height, ratio) {
    [this.width, this.height] = [width, height];
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.layout = layOut(this.history.fabric, width, height);
    this.wires = new Path2D();
    for (const [x, y, toX, toY] of this.layout.lanes) { this.wires.moveTo(x, y); this.wires.lineTo(toX, toY); }
  }

  // The colour of a packet: data by their tenant or flow, all else by what it is.
  colour(row) {
    const { kind, kindPlace, flow } = this.history;
    if (kind[row]) return this.kindColours[(kindPlace[kind[row]] - 1) % COLOURS];
    return this.colours[(this.history.tenantOf(row) ?? flow[row]) % COLOURS] ?? this.theme.ink;
  }

  // By area, as bytes are.
  radius(row, most) {
    return most * Math.max(LEAST, Math.sqrt(this.history.bytes[row] / this.history.bytesMost));
  }

  isHidden(row) {
    const { kind, kindNames } = this.history;
    return this.state.hidden.has(kindNames[kind[row]]);
  }

  // `state`: time, node (none: the whole fabric), chosen (a row), hidden (names of kinds), span (how long a loss is shown).
  draw(state) {
    const { pen, theme } = this;
    this.state = state;
    this.marks = [];
    this.places = [];
    this.names = [];
    pen.clearRect(0, 0, this.width, this.height);
    pen.lineCap = "round";
    pen.font = "12px system-ui, sans-serif";
    pen.fillStyle = theme.ink;
    this.chosen = new Set(state.chosen >= 0 ? this.history.way(state.chosen) : []);
    const held = new Map();
    for (const one of this.history.heldAt(state.time)) held.set(one.link, [...(held.get(one.link) ?? []), one]);
    if (state.node >= 0) this.drawNode(held); else this.drawFabric(held);
  }

  drawFabric(held) {
    const { pen, theme, history, layout } = this, { time } = this.state, { lanes, boxes, labels, size } = layout;
    pen.strokeStyle = theme.line;
    pen.lineWidth = 1;
    pen.stroke(this.wires);
    this.trail(lanes);
    const congested = history.congestedAt(time);
    lanes.forEach((lane, link) => {
      if (held.has(link)) this.stopped(lane, held.get(link).some(({ whole }) => whole));
      this.queueBar(lane, link, held.has(link), congested.get(link));
    });
    this.drawBoxes(boxes, size);
    pen.fillStyle = theme.soft;
    pen.textAlign = "left";
    for (const [x, y, text] of labels) pen.fillText(text, x, y);
    congested.forEach(({ root }, link) => { if (root) this.root(lanes[link], size); });
    lanes.forEach((lane, link) => this.packets(lane, link, Math.max(2.6, 5.5 * size)));
    this.losses((row) => boxes[history.node[row]], Math.max(4, 7 * size));
  }

  drawBoxes(boxes, size) {
    const { pen, theme } = this, { names, hosts } = this.history.fabric;
    boxes.forEach(([x, y, wide, high], node) => {
      pen.fillStyle = node < hosts ? theme.soft : theme.ink;
      pen.beginPath();
      pen.roundRect(x - wide / 2, y - high / 2, wide, high, Math.min(3, high / 4));
      pen.fill();
      this.places.push([x, y, Math.max(wide / 2, 6), Math.max(high / 2, 6), node]);
      const text = names[node];
      if (node >= hosts && pen.measureText(text).width < wide - 6) {
        pen.fillStyle = theme.ground;
        pen.textAlign = "center";
        pen.font = "10px system-ui, sans-serif";
        pen.fillText(text, x, y + 3.5);
        pen.font = "12px system-ui, sans-serif";
      } else if (node < hosts) this.hostName(text, x, y + high / 2 + 10);
    });
    this.size = size;
  }

  // Whole where there is room; where there is little, its number.
  hostName(text, x, y) {
    const { pen, theme } = this, { room = 0 } = this.layout;
    pen.font = "10px system-ui, sans-serif";
    const fits = [text, /\d+$/.exec(text)?.[0] ?? ""].find((one) => one && pen.measureText(one).width + 3 < room);
    if (fits) {
      pen.fillStyle = theme.soft;
      pen.textAlign = "center";
      pen.fillText(fits, x, y);
      this.names.push(fits);
    }
    pen.font = "12px system-ui, sans-serif";
  }

  // The way of the chosen packet.
  trail(lanes) {
    const { pen, theme, history } = this;
    pen.strokeStyle = theme.accent;
    pen.globalAlpha = 0.35;
    pen.lineWidth = 7;
    for (const row of this.chosen) {
      if (history.lost[row]) continue;
      const lane = lanes[history.link[row]];
      if (lane) this.line(...lane);
    }
    pen.globalAlpha = 1;
  }

  line(x, y, toX, toY) {
    this.pen.beginPath();
    this.pen.moveTo(x, y);
    this.pen.lineTo(toX, toY);
    this.pen.stroke();
  }

  stopped([x, y, toX, toY], isWhole) {
    const { pen, theme } = this;
    pen.strokeStyle = theme.stop;
    pen.lineWidth = isWhole ? 2.5 : 1.3;
    pen.setLineDash([5, 4]);
    this.line(x, y, (x + toX) / 2, (y + toY) / 2);
    pen.setLineDash([]);
  }

  // What waits for a link, at its sender's end; of that the share of innocent packets farthest from it.
  queueBar([x, y, toX, toY], link, isHeld, congested) {
    const { pen, theme, history } = this, bytes = history.waiting(link, this.state.time);
    if (bytes <= 0) return;
    const far = Math.hypot(toX - x, toY - y) || 1;
    const share = Math.max((BAR * bytes) / history.longestQueue, Math.min(BAR, 4 / far));
    const at = (part) => [x + (toX - x) * share * part, y + (toY - y) * share * part];
    const innocent = congested?.bytes ? congested.innocent / congested.bytes : 0;
    pen.lineCap = "butt";
    pen.lineWidth = Math.max(3, 6 * this.layout.size);
    pen.strokeStyle = isHeld ? theme.stop : theme.queue;
    this.line(x, y, ...at(1));
    if (innocent > 0) { pen.strokeStyle = theme.innocent; this.line(...at(1 - Math.min(1, innocent)), ...at(1)); }
    pen.lineCap = "round";
    const waits = this.chosenAt(link);
    if (waits !== undefined) this.ring(...at(0.5), 8, waits);
  }

  // The chosen packet's row, if it waits for this link now.
  chosenAt(link) {
    const { history } = this, { time } = this.state;
    return [...this.chosen].find((row) => (
      !history.lost[row] && history.link[row] === link && history.came_ps[row] <= time && history.time_ps[row] > time
    ));
  }

  // A flag beside its port, since packets are round or diamonds.
  root([x, y, , toY], size) {
    const { pen, theme } = this, high = Math.max(10, 15 * size) * (toY < y ? -1 : 1), pole = x - 8;
    pen.strokeStyle = theme.ink;
    pen.lineWidth = 2;
    this.line(pole, y, pole, y + high);
    pen.beginPath();
    pen.moveTo(pole, y + high);
    pen.lineTo(pole - Math.abs(high), y + 0.72 * high);
    pen.lineTo(pole, y + 0.44 * high);
    pen.closePath();
    pen.fillStyle = theme.lost;
    pen.fill();
  }

  // Packets on a link, each as far along as the share of its time there that has passed.
  packets([x, y, toX, toY], link, radius) {
    const { history } = this, { time } = this.state;
    for (const row of history.flying(link, time)) {
      const begin = history.time_ps[row], share = (time - begin) / (history.arrive[row] - begin || 1);
      if (!this.isHidden(row)) this.packet(x + (toX - x) * share, y + (toY - y) * share, radius, row);
    }
  }

  packet(x, y, radius, row) {
    const { pen, theme, history } = this;
    pen.fillStyle = this.colour(row);
    pen.beginPath();
    const r = this.radius(row, radius);
    if (history.kind[row]) {
      pen.moveTo(x, y - r);
      pen.lineTo(x + r, y);
      pen.lineTo(x, y + r);
      pen.lineTo(x - r, y);
      pen.closePath();
    } else pen.arc(x, y, r, 0, 2 * Math.PI);
    pen.fill();
    if (history.marked[row]) { pen.strokeStyle = theme.stop; pen.lineWidth = 1.8; pen.stroke(); }
    if (this.chosen.has(row)) this.ring(x, y, r + 5, row);
    this.marks.push([x, y, row]);
  }

  ring(x, y, radius, row) {
    const { pen, theme } = this;
    pen.strokeStyle = theme.accent;
    pen.lineWidth = 2.5;
    pen.beginPath();
    pen.arc(x, y, radius, 0, 2 * Math.PI);
    pen.stroke();
    this.marks.push([x, y, row]);
  }

  // Crosses where packets have been lost a moment ago.
  losses(boxOf, radius) {
    const { pen, theme, history } = this, { time, span } = this.state;
    pen.strokeStyle = theme.lost;
    pen.lineWidth = 2.5;
    for (const row of history.lostRows) {
      const since = time - history.time_ps[row];
      if (since < 0 || since >= span) continue;
      const box = boxOf(row);
      if (!box) continue;
      const [x, y] = [box[0], box[1] - box[3] / 2 - radius - 3];
      this.line(x - radius, y - radius, x + radius, y + radius);
      this.line(x - radius, y + radius, x + radius, y - radius);
      this.marks.push([x, y, row]);
    }
  }

  // One node: what comes from the left, its queues, and what leaves to the right.
  drawNode(held) {
    const { pen, theme, history, width, height } = this, { fabric } = history, { node, time } = this.state;
    const links = [...fabric.leaving[node]].sort((a, b) => fabric.ends[a][1] - fabric.ends[b][1] || a - b);
    const side = Math.min(110, width * 0.2), step = Math.min(54, (height - 34) / Math.max(links.length, 1));
    const [left, right] = [side + width * 0.13, width - side - width * 0.13], top = 26;
    pen.fillStyle = theme.raised;
    pen.strokeStyle = theme.ink;
    pen.lineWidth = 1.5;
    pen.beginPath();
    pen.roundRect(left, top - 6, right - left, step * links.length + 12, 6);
    pen.fill();
    pen.stroke();
    pen.fillStyle = theme.ink;
    pen.textAlign = "center";
    pen.font = "600 13px system-ui, sans-serif";
    pen.fillText(fabric.names[node], (left + right) / 2, 14);
    const congested = history.congestedAt(time), rows = [];
    links.forEach((link, at) => {
      const y = top + step * (at + 0.5), out = [right, y, width - side, y], into = [side, y, left, y];
      pen.strokeStyle = theme.line;
      pen.lineWidth = 1;
      this.line(...out);
      this.line(...into);
      this.neighbour(fabric.ends[link][1], side, y, step);
      const isWhole = held.get(link)?.some((one) => one.whole);
      if (held.has(link)) this.stopped([right, y, 2 * (width - side) - right, y], isWhole);
      rows.push([link, y, out, into]);
    });
    this.trail(Object.fromEntries(rows.flatMap(([link, , out, into]) => [[link, out], [link ^ 1, into]])));
    for (const [link, y, out, into] of rows) {
      this.queue(link, left, right, y, step, held.get(link));
      if (congested.get(link)?.root) this.root(out, 1);
      this.packets(out, link, 6);
      this.packets(into, link ^ 1, 6);
    }
    this.losses((row) => (history.node[row] === node ? [(left + right) / 2, top + 24, 0, 0] : null), 7);
  }

  neighbour(node, side, y, step) {
    const { pen, theme, width } = this, high = Math.min(22, step - 2);
    pen.font = `${Math.min(12, Math.max(8, step - 3))}px system-ui, sans-serif`;
    for (const x of [side / 2, width - side / 2]) {
      pen.fillStyle = theme.soft;
      pen.textAlign = "center";
      pen.fillText(this.history.fabric.names[node], x, y + 4);
      this.places.push([x, y, side / 2, Math.max(high / 2, 6), node]);
    }
  }

  // The packets that wait for a port, the next one at the right.
  queue(link, left, right, y, step, held) {
    const { pen, theme, history } = this, { time } = this.state, rows = history.queued(link, time);
    const bytes = history.waiting(link, time), high = Math.max(4, Math.min(20, step - 8));
    const room = right - left - 16, each = Math.min(14, room / Math.max(rows.length, 1));
    if (history.isSampled && bytes > 0) {
      pen.fillStyle = held ? theme.stop : theme.queue;
      const wide = Math.max(2, (room * bytes) / history.longestQueue);
      pen.fillRect(right - 8 - wide, y - high / 2, wide, high);
    }
    rows.forEach((row, at) => {
      const x = right - 8 - each * (at + 1);
      pen.globalAlpha = this.isHidden(row) ? 0.25 : 1;
      pen.fillStyle = this.colour(row);
      const inset = each > 4 ? 1 : 0, small = history.kind[row] ? high / 4 : 0;
      pen.fillRect(x + inset, y - high / 2 + small, Math.max(each - 2 * inset, 0.5), high - 2 * small);
      if (history.marked[row]) {
        pen.strokeStyle = theme.stop;
        pen.lineWidth = 1.5;
        pen.strokeRect(x + inset, y - high / 2, each - 2 * inset, high);
      }
      if (this.chosen.has(row)) this.ring(x + each / 2, y, 11, row);
      this.marks.push([x + each / 2, y, row]);
    });
    pen.globalAlpha = 1;
    if (step < 26 || (!bytes && !held)) return;
    const words = [bytes ? sizeOf(bytes) : "", held ? `held: ${held.map(({ what }) => what).join("; ")}` : ""];
    pen.font = "10px system-ui, sans-serif";
    pen.textAlign = "left";
    pen.fillStyle = held ? theme.stop : theme.soft;
    let text = words.filter(Boolean).join(", ");
    while (text.length > 4 && pen.measureText(text).width > room) text = `${text.slice(0, -2)}…`;
    pen.fillText(text, left + 8, y - high / 2 - 2);
  }

  // The link near a point of the whole fabric at which anything waits or is held; -1 without one.
  linkAt(x, y) {
    if (!this.state || this.state.node >= 0) return -1;
    const { history } = this, { time } = this.state, held = new Set(history.heldAt(time).map(({ link }) => link));
    let [best, nearest] = [-1, REACH / 2];
    this.layout.lanes.forEach(([fromX, fromY, toX, toY], link) => {
      if (!held.has(link) && history.waiting(link, time) <= 0) return;
      const far = (toX - fromX) ** 2 + (toY - fromY) ** 2 || 1;
      // On the sender's half.
      const along = Math.min(Math.max(((x - fromX) * (toX - fromX) + (y - fromY) * (toY - fromY)) / far, 0), 0.5);
      const away = Math.hypot(fromX + along * (toX - fromX) - x, fromY + along * (toY - fromY) - y);
      if (away < nearest) [best, nearest] = [link, away];
    });
    return best;
  }

  // Rows of the packets at a point, the nearest first.
  rowsAt(x, y) {
    const near = this.marks.map(([markX, markY, row]) => [Math.hypot(x - markX, y - markY), row]);
    const found = near.filter(([far]) => far < REACH).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    return [...new Set(found.map(([, row]) => row))];
  }

  // What is at a point: `{ row }` of a packet, `{ node }`, or nothing.
  at(x, y) {
    const [row] = this.rowsAt(x, y);
    if (row !== undefined) return { row };
    const inside = ([boxX, boxY, wide, high]) => Math.abs(x - boxX) <= wide && Math.abs(y - boxY) <= high;
    const place = this.places.find(inside);
    return place ? { node: place[4] } : null;
  }
}
