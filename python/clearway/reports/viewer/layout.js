// Where nodes and cables are drawn: tiers above their hosts, grids as grids, anything else on a ring.
//
// A node is named by its place in `names`, hosts first. All of it is in pixels of a picture of a given size.

const MARGIN = 16, GUTTER = 52;
// Two lanes of a cable, one each way, are so far from its middle.
export const LANE = 2.6;

// A fabric's nodes and cables, from the table of links.
export function fabricOf(view) {
  const { from_node: from, to_node: to, tier, rate_bps: rates, delay_ps: delays } = view.tables.links.columns;
  const word = (of, row) => of.names[of.values[row]];
  const hosts = [], others = [], seen = new Set(), size = view.tables.links.rows;
  for (let link = 0; link < size; link++) {
    const name = word(from, link);
    if (seen.has(name)) continue;
    seen.add(name);
    (word(tier, link) === "from_host" ? hosts : others).push(name);
  }
  for (let link = 0; link < size; link++) {
    const name = word(to, link);
    if (!seen.has(name)) { seen.add(name); others.push(name); }
  }
  const natural = new Intl.Collator("en", { numeric: true });
  others.sort(natural.compare);
  const names = [...hosts, ...others], place = new Map(names.map((name, at) => [name, at]));
  const ends = Array.from({ length: size }, (_, link) => [place.get(word(from, link)), place.get(word(to, link))]);
  const leaving = names.map(() => []);
  ends.forEach(([source], link) => leaving[source].push(link));
  return {
    names, place, ends, leaving, hosts: hosts.length, dims: view.dims, rates: rates.values, delays: delays.values,
    levels: levels(names.length, hosts.length, ends),
  };
}

// Hops to the nearest host.
function levels(nodes, hosts, ends) {
  const near = Array.from({ length: nodes }, () => []);
  for (const [source, target] of ends) near[source].push(target);
  const level = Array.from({ length: nodes }, (_, node) => (node < hosts ? 0 : -1));
  let front = Array.from({ length: hosts }, (_, host) => host);
  while (front.length) {
    const next = [];
    for (const node of front) for (const target of near[node]) {
      if (level[target] < 0) { level[target] = level[node] + 1; next.push(target); }
    }
    front = next;
  }
  return level.map((hops) => Math.max(0, hops));
}

// `{ boxes, lanes, labels, size }`: nodes as [x, y, width, height], links as [x, y, x, y] from the sender's port to the
// receiver's, and what the tiers are called. `size` is that of marks, as a share of what they have where there is room;
// `room` is how wide the name of a host may be.
export function layOut(fabric, width, height) {
  const { names, hosts, ends, levels: level, dims } = fabric, switches = names.length - hosts;
  const home = Array.from({ length: hosts }, (_, host) => ends[fabric.leaving[host][0]]?.[1] ?? host);
  const isGrid = dims.length && dims.reduce((all, one) => all * one, 1) === switches;
  const isFlat = Math.max(1, ...level.slice(hosts)) === 1 && switches > 4;
  const placed = isGrid ? grid(fabric, home, width, height)
    : isFlat ? ring(fabric, home, width, height) : tiers(fabric, home, width, height);
  return { labels: [], size: 1, ...placed, width, height };
}

function tiers({ names, hosts, ends, levels: level }, home, width, height) {
  const top = Math.max(...level), left = GUTTER, room = width - left - MARGIN;
  const racks = names.map((_, node) => node).filter((node) => node >= hosts && level[node] === 1);
  const ofRack = new Map(racks.map((rack) => [rack, []]));
  home.forEach((rack, host) => ofRack.get(rack)?.push(host));
  const pitch = room / Math.max(hosts + 1.6 * racks.length, 1);
  const high = (tier) => height - MARGIN - 8 - (tier * (height - 2 * MARGIN - 24)) / Math.max(top, 1);
  const boxes = [], hostSize = Math.min(13, 0.66 * pitch);
  let x = left + 0.8 * pitch;
  for (const rack of racks) {
    const first = x;
    for (const host of ofRack.get(rack)) {
      boxes[host] = [x + pitch / 2, high(0), hostSize, hostSize];
      x += pitch;
    }
    x = Math.max(x, first + 2 * pitch);
    boxes[rack] = [(first + x) / 2, high(1), x - first, 13];
    x += 1.6 * pitch;
  }
  for (let tier = 2; tier <= top; tier++) {
    const below = (node) => {
      const of = ends.filter(([from, to]) => from === node && level[to] === tier - 1).map(([, to]) => boxes[to][0]);
      return of.length ? of.reduce((all, one) => all + one, 0) / of.length : 0;
    };
    const some = names.map((_, node) => node).filter((node) => node >= hosts && level[node] === tier)
      .map((node) => [Math.round(below(node) * 1e3), node]).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    const step = room / some.length;
    some.forEach(([, node], at) => {
      boxes[node] = [left + step * (at + 0.5), high(tier), Math.min(80, 0.72 * step), 13];
    });
  }
  names.forEach((_, node) => { boxes[node] ??= [left, high(0), hostSize, hostSize]; });
  const labels = [];
  for (let tier = 0; tier <= top; tier++) {
    const name = names[level.indexOf(tier)] ?? "";
    labels.push([4, high(tier) + 4, name.replace(/[\d.:_-]+$/, "") || name]);
  }
  return { boxes, labels, lanes: joined(ports(ends, hosts, level, boxes)), size: Math.min(1, pitch / 9 + 0.35), room: pitch };
}

// Where each link leaves its sender: spread along the edge, in the order of where they lead.
function ports(ends, hosts, level, boxes) {
  const sides = new Map(), found = [];
  ends.forEach(([source, target], link) => {
    const key = `${source} ${Math.sign(level[target] - level[source])}`;
    if (!sides.has(key)) sides.set(key, []);
    sides.get(key).push(link);
  });
  for (const links of sides.values()) {
    links.sort((a, b) => boxes[ends[a][1]][0] - boxes[ends[b][1]][0] || a - b);
    links.forEach((link, at) => {
      const [source, target] = ends[link], [x, y, wide, high] = boxes[source];
      const side = Math.sign(level[target] - level[source]);
      if (side === 0) found[link] = [x + (Math.sign(boxes[target][0] - x) * wide) / 2, y];
      else if (target < hosts || (source < hosts && links.length === 1)) {
        const near = boxes[Math.min(source, target)][0];
        found[link] = [Math.min(Math.max(near, x - 0.46 * wide), x + 0.46 * wide), y - (side * high) / 2];
      } else found[link] = [x + wide * 0.84 * ((at + 0.5) / links.length - 0.5), y - (side * high) / 2];
    });
  }
  return found;
}

// Links from port to port: a cable is two consecutive links, each on its own lane.
function joined(found) {
  return found.map(([x, y], link) => aside(x, y, ...(found[link ^ 1] ?? [x, y])));
}

// To the right, as seen in its direction.
function aside(x, y, toX, toY) {
  const far = Math.hypot(toX - x, toY - y) || 1, [dx, dy] = [(-(toY - y) / far) * LANE, ((toX - x) / far) * LANE];
  return [x + dx, y + dy, toX + dx, toY + dy];
}

// Planes of the first two dimensions side by side. A link that wraps around, or leads to another plane, is a stub.
function grid({ names, hosts, ends, dims }, home, width, height) {
  const columns = dims[0], rows = dims[1] ?? 1, planes = (names.length - hosts) / (columns * rows);
  const cellOf = (across) => {
    const down = Math.ceil(planes / across);
    return Math.min((width - 8) / (across * (columns + 1)), (height - 8) / (down * (rows + 1)));
  };
  let across = 1;
  for (let one = 2; one <= planes; one++) if (cellOf(one) > cellOf(across)) across = one;
  const cell = Math.min(cellOf(across), 130);
  const shiftX = (width - cell * across * (columns + 1)) / 2;
  const shiftY = (height - cell * Math.ceil(planes / across) * (rows + 1)) / 2;
  const at = (node) => {
    const plane = Math.floor(node / (columns * rows)), column = node % columns;
    const row = Math.floor(node / columns) % rows;
    return [
      shiftX + cell * ((plane % across) * (columns + 1) + column + 1),
      shiftY + cell * (Math.floor(plane / across) * (rows + 1) + row + 1),
    ];
  };
  const wide = 0.3 * cell, fellows = new Map(), boxes = [];
  names.forEach((_, node) => {
    if (node >= hosts) { boxes[node] = [...at(node - hosts), wide, wide]; return; }
    const nth = fellows.get(home[node]) ?? 0, [x, y] = at(home[node] - hosts);
    fellows.set(home[node], nth + 1);
    boxes[node] = [x + 0.4 * cell - 0.16 * cell * nth, y + 0.4 * cell, wide / 2, wide / 2];
  });
  const strides = dims.map((_, axis) => dims.slice(0, axis).reduce((all, one) => all * one, 1));
  const away = [[1.1, 0], [0, 1.1], [1, -1], [-1, -1], [0.45, -1.1], [-1.1, 0.45]];
  const lanes = ends.map(([source, target]) => {
    let [x, y] = boxes[source], [toX, toY] = boxes[target], end = boxes[target][2];
    if (Math.min(source, target) >= hosts) {
      const [one, other] = [source - hosts, target - hosts];
      const along = (node, axis) => Math.floor(node / strides[axis]) % dims[axis];
      const steps = dims.map((_, axis) => along(other, axis) - along(one, axis));
      const axis = steps.findIndex((step) => step !== 0), far = Math.abs(steps[axis]);
      const ahead = steps[axis] > 0 === (far === 1) ? 1 : -1;
      if (axis > 1 || far > 1) {
        const [dx, dy] = away[axis] ?? [1, 1];
        [toX, toY, end] = [x + ahead * dx * cell * 0.5, y + ahead * dy * cell * 0.5, 0];
      }
    }
    const far = Math.hypot(toX - x, toY - y) || 1, [ux, uy] = [(toX - x) / far, (toY - y) / far];
    const [begin, stop] = [boxes[source][2] / 2, end / 2];
    return aside(x + ux * begin, y + uy * begin, toX - ux * stop, toY - uy * stop);
  });
  return { boxes, lanes, size: Math.min(1, cell / 60), room: 0.6 * cell };
}

// Switches on a circle, with their hosts outside it.
function ring({ names, hosts, ends }, home, width, height) {
  const switches = names.length - hosts, radius = Math.min(width, height) / 2 - 52;
  const at = (turn, far) => [
    width / 2 + far * Math.sin(2 * Math.PI * turn), height / 2 - far * Math.cos(2 * Math.PI * turn),
  ];
  const fellows = new Map(), size = Math.min(14, (4 * radius) / switches), boxes = [];
  for (let host = 0; host < hosts; host++) fellows.set(home[host], [...(fellows.get(home[host]) ?? []), host]);
  names.forEach((_, node) => {
    if (node >= hosts) { boxes[node] = [...at((node - hosts) / switches, radius), size, size]; return; }
    const of = fellows.get(home[node]), spread = 0.7 * ((of.indexOf(node) + 0.5) / of.length - 0.5);
    boxes[node] = [...at((home[node] - hosts + spread) / switches, radius + 38), size / 2, size / 2];
  });
  const lanes = ends.map(([source, target]) => aside(...boxes[source].slice(0, 2), ...boxes[target].slice(0, 2)));
  return { boxes, lanes, size: Math.min(1, size / 10 + 0.2), room: 4 * size };
}
