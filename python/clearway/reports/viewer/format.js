// What is drawn: a view, which a run in the browser and a saved result give alike.
//
// A view is `{ name, end_ps, dims, tenants, partial, notes, tables }`. `tables` has the columns below, each
// `{ kind, values, names }`: `numbers` are floats with NaN for "none", `names` index a list in the order of its first
// use. `packets` are the first ROWS_MAX rows, by time: when each packet left a node, or was lost
// there. `congestion` are samples of what congestion control between neighbours holds; of more than SAMPLES_MAX rows
// there is only every second sample, or third, and so on. A view has one of these tables, or both. `dims` are the
// lengths of a torus or mesh, `tenants` are names of entities with the classes of their flows, `partial` is whether only some packets or links were recorded. `reports/view.py` writes the
// same, packed: the length of a JSON head in 4 bytes, the head, the columns one after another.

export const ROWS_MAX = 200_000;
export const SAMPLES_MAX = 200_000;

export const COLUMNS = {
  links: ["from_node", "to_node", "tier", "rate_bps", "delay_ps"],
  flows: ["flow", "src", "dst", "bytes", "class", "transport", "start_ps", "completed_ps", "slowdown", "status"],
  packets: [
    "time_ps", "node", "to_node", "link", "came_ps", "last_ps", "lost", "flow", "transport", "says", "source", "destination",
    "hop", "class", "bytes", "payload_bytes", "offset_bytes", "marked", "trimmed",
  ],
  congestion: ["time_ps", "link", "cause", "role", "paused", "bytes", "innocent_bytes"],
};
export const cutNote = (rows) =>
  `Only the first ${ROWS_MAX.toLocaleString("en")} of ${rows.toLocaleString("en")} recorded packets are drawn.`;

export const samplesNote = (stride) =>
  `Of the samples of congestion one in ${stride.toLocaleString("en")} is drawn.`;

// The columns of a table that are drawn, in these rows; null if it lacks one.
function part(table, name, rows) {
  const columns = {};
  for (const column of COLUMNS[name]) {
    const of = table.columns[column];
    if (!of) return null;
    if (of.kind !== "names") {
      columns[column] = { kind: "numbers", values: Float64Array.from(rows, (row) => of.values[row]) };
      continue;
    }
    const values = new Uint32Array(rows.length), names = [], place = new Map();
    rows.forEach((row, at) => {
      const said = of.names[of.values[row]] ?? "";
      if (!place.has(said)) place.set(said, names.push(said) - 1);
      values[at] = place.get(said);
    });
    columns[column] = { kind: "names", values, names };
  }
  return { rows: rows.length, columns };
}

// Rows of whole samples, evenly over the run: `[stride, rows]`.
function samples(table) {
  const times = table.columns.time_ps.values, number = new Uint32Array(table.rows);
  for (let row = 1; row < table.rows; row++) number[row] = number[row - 1] + (times[row] !== times[row - 1] ? 1 : 0);
  for (let stride = 1; ; stride++) {
    const rows = number.reduce((all, of) => all + (of % stride === 0 ? 1 : 0), 0);
    if (rows > SAMPLES_MAX && stride <= number.at(-1)) continue;
    return [stride, [...number.keys()].filter((row) => number[row] % stride === 0)];
  }
}

// The view of a run's tables; null without recorded packets and samples of congestion. `scenario` is what its resolved TOML
// says.
export const viewOf = (result, scenario) =>
  (result.tables.packets?.rows || result.tables.congestion?.rows ? fabricViewOf(result, scenario) : null);

// The same, also of a run that has not begun: then it is its fabric alone.
export function fabricViewOf({ info, tables }, scenario) {
  const view = { name: "", end_ps: info.end_ps, dims: [], tenants: [], partial: false, notes: [], tables: {} };
  view.tenants = (scenario.entity ?? []).map(({ name, traffic }) => [name, traffic ?? []]);
  view.dims = (scenario.fabric?.torus ?? scenario.fabric?.mesh)?.dims ?? [];
  const asked = scenario.measure?.packets ?? {};
  view.partial = Boolean(tables.packets?.rows) && ["flows", "classes", "hosts", "links"].some((name) => asked[name]?.length);
  const isOfPackets = (one) => tables.packets?.rows && one.startsWith("measure.packets:");
  view.notes = (info.warnings ?? []).filter(isOfPackets);
  if (tables.packets?.rows > ROWS_MAX) view.notes.push(cutNote(tables.packets.rows));
  for (const name in COLUMNS) {
    const table = tables[name];
    if (!table || (name === "packets" && !table.rows)) continue;
    let rows = Array.from({ length: name === "packets" ? Math.min(table.rows, ROWS_MAX) : table.rows }, (_, row) => row);
    if (name === "congestion" && table.rows) {
      const [stride, some] = samples(table);
      rows = some;
      if (stride > 1) view.notes.push(samplesNote(stride));
    }
    const of = part(table, name, rows);
    if (of) view.tables[name] = of;
  }
  return view;
}

// A packed view, from bytes as `reports/view.py` writes them.
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
