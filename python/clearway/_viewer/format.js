// What is drawn: a view, which a run in the browser and a saved result give alike.
//
// A view is `{ name, end_ps, dims, partial, notes, tables }`. `tables` has the columns below, each
// `{ kind, values, names }`: `numbers` are floats with NaN for "none", `names` index a list in the order of its first
// use. `packets` are the first ROWS_MAX rows, by time: when each packet left a node, or was lost
// there. `dims` are the lengths of a torus or mesh, `partial` is whether only some packets or links were recorded.
// `_view.py` writes the same, packed: the length of a JSON head in 4 bytes, the head, the columns one after another.

export const ROWS_MAX = 200_000;
// Samples of what congestion control between neighbours holds; sampled less often than packets move.
export const SAMPLES_MAX = 200_000;

export const COLUMNS = {
  links: ["from", "to", "tier", "rate_bps", "delay_ps"],
  flows: ["flow", "src", "dst", "bytes", "class", "transport", "start_ps", "completed_ps", "slowdown", "status"],
  packets: [
    "time_ps", "node", "to", "link", "came_ps", "last_ps", "lost", "flow", "transport", "says", "source", "destination",
    "hop", "class", "bytes", "payload_bytes", "offset", "marked", "trimmed",
  ],
  congestion: ["time_ps", "link", "cause", "role", "paused", "bytes", "innocent_bytes"],
};
const MOST = { packets: ROWS_MAX, congestion: SAMPLES_MAX };
export const cutNote = (rows) =>
  `Only the first ${ROWS_MAX.toLocaleString("en")} of ${rows.toLocaleString("en")} recorded packets are drawn.`;

// The columns of a table that are drawn; null if it lacks one.
function part(table, name) {
  const rows = Math.min(table.rows, MOST[name] ?? Infinity), columns = {};
  for (const column of COLUMNS[name]) {
    const of = table.columns[column];
    if (!of) return null;
    if (of.kind !== "names") {
      columns[column] = { kind: "numbers", values: Float64Array.from(of.values.subarray(0, rows)) };
      continue;
    }
    const values = new Uint32Array(rows), names = [], place = new Map();
    for (let row = 0; row < rows; row++) {
      const said = of.names[of.values[row]] ?? "";
      if (!place.has(said)) place.set(said, names.push(said) - 1);
      values[row] = place.get(said);
    }
    columns[column] = { kind: "names", values, names };
  }
  return { rows, columns };
}

// The view of a run's tables; null without recorded packets. `scenario` has every default filled in.
export function viewOf({ info, tables, scenario }) {
  if (!tables.packets?.rows) return null;
  const view = { name: "", end_ps: info.end_ps, dims: [], partial: false, notes: [], tables: {} };
  const dims = /\[fabric\.(?:torus|mesh)\][^[]*?^dims = \[([\d,\s]+)\]/m.exec(scenario);
  if (dims) view.dims = dims[1].split(",").filter((one) => one.trim()).map(Number);
  const asked = /^\[measure\.packets\]\n((?:.+\n)*)/m.exec(scenario)?.[1] ?? "";
  view.partial = /^(flows|classes|hosts|links) = \[\s*[^\]\s]/m.test(asked);
  view.notes = (info.warnings ?? []).filter((one) => one.startsWith("measure.packets:"));
  if (tables.packets.rows > ROWS_MAX) view.notes.push(cutNote(tables.packets.rows));
  for (const name in COLUMNS) {
    const of = tables[name] && part(tables[name], name);
    if (of) view.tables[name] = of;
  }
  return view;
}

// A packed view, from bytes as `_view.py` writes them.
export function unpacked(bytes) {
  const length = new DataView(bytes).getUint32(0, true);
  const view = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 4, length)));
  let at = 4 + length;
  for (const { rows, columns } of Object.values(view.tables)) {
    for (const of of Object.values(columns)) {
      const size = rows * (of.kind === "numbers" ? 8 : 4), values = bytes.slice(at, at + size);
      of.values = of.kind === "numbers" ? new Float64Array(values) : new Uint32Array(values);
      at += size;
    }
  }
  return view;
}
