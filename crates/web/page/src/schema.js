// The JSON Schema of a scenario at a place in a TOML text: the keys and names that may stand there.

// The dotted path at the end of `before`: tables' headings, keys to the left, and inline tables that are open.
export function pathAt(before) {
  let table = [], open = [], key = [], after = false, word = "";
  const names = (text) => text.split(".").map((part) => part.trim().replace(/^["']|["']$/g, "")).filter(Boolean);
  let quote = "";
  for (let at = 0; at < before.length; at++) {
    const sign = before[at];
    if (quote) { if (sign === quote) quote = ""; word += sign; continue; }
    if (sign === '"' || sign === "'") { quote = sign; word += sign; }
    else if (sign === "#") {
      while (at < before.length && before[at] !== "\n") at++;
      if (!open.length) { key = []; after = false; }
      word = "";
    }
    else if (sign === "\n") { if (!open.length) { key = []; after = false; } word = ""; }
    else if (sign === "[" && !after && !open.length && !word.trim()) {
      const line = /^\[\[?([^\]\n]*)\]?\]?/.exec(before.slice(at));
      if (at + line[0].length >= before.length && !line[0].endsWith("]")) {
        const parts = line[1].split(".");
        return { path: parts.slice(0, -1), word: parts.at(-1), kind: "heading" };
      }
      table = names(line[1]);
      at += line[0].length - 1;
    }
    else if (sign === "=") { key = names(word); after = true; word = ""; }
    else if (sign === "{" || sign === "[") {
      open.push({ key, after, list: sign === "[" });
      if (sign === "{") key = [];
      after = sign === "[";
      word = "";
    } else if (sign === "}" || sign === "]") {
      const last = open.pop();
      if (last) ({ key, after } = last);
      word = "";
    } else if (sign === ",") {
      if (!open.at(-1)?.list) { key = []; after = false; }
      word = "";
    }
    else word += sign;
  }
  const inner = open.filter((one) => !one.list).flatMap((one) => one.key);
  if (after) {
    const last = open.at(-1)?.list ? open.at(-1).key : key;
    return { path: [...table, ...inner, ...last], word: word.trim(), kind: "value" };
  }
  const parts = word.trim().split(".");
  return { path: [...table, ...inner, ...parts.slice(0, -1)], word: parts.at(-1), kind: "key" };
}

export class Schema {
  constructor(text) { this.root = JSON.parse(text); }

  // A schema and all that it may be instead.
  *alternatives(schema, depth = 0) {
    if (!schema || depth > 8) return;
    if (schema.$ref) {
      const target = schema.$ref.replace(/^#\//, "").split("/").reduce((at, part) => at?.[part], this.root);
      yield* this.alternatives(target, depth + 1);
    }
    for (const some of ["anyOf", "oneOf", "allOf"]) {
      for (const one of schema[some] ?? []) yield* this.alternatives(one, depth + 1);
    }
    if (schema.items) yield* this.alternatives(schema.items, depth + 1);
    yield schema;
  }

  // All schemas that a path may lead to.
  at(path) {
    let found = [this.root];
    for (const part of path) {
      const next = [];
      for (const schema of found) for (const one of this.alternatives(schema)) {
        if (one.properties?.[part]) next.push(one.properties[part]);
        else if (typeof one.additionalProperties === "object") next.push(one.additionalProperties);
      }
      found = next;
    }
    return found;
  }

  keys(path) {
    const keys = new Map();
    for (const schema of this.at(path)) for (const one of this.alternatives(schema)) {
      for (const [key, of] of Object.entries(one.properties ?? {})) if (!keys.has(key)) keys.set(key, about(this, of));
    }
    return [...keys].map(([label, info]) => ({ label, info }));
  }

  values(path) {
    const values = new Map(), told = new Map(this.keys(path).map(({ label, info }) => [label, info]));
    // A value by itself stands for the table of its name with every default; others are told by what they are for.
    const general = this.at(path).map((schema) => about(this, schema)).find(Boolean) ?? "";
    const says = (value, own) => own || told.get(value) || general;
    for (const schema of this.at(path)) for (const one of this.alternatives(schema)) {
      for (const value of one.const !== undefined ? [one.const] : one.enum ?? []) {
        values.set(JSON.stringify(value), says(value, one.const !== undefined && one.description));
      }
      if (one.type === "boolean") for (const value of ["true", "false"]) values.set(value, general);
    }
    return [...values].map(([label, info]) => ({ label, info }));
  }
}

function about(schema, of) {
  if (of.description) return of.description;
  for (const one of schema.alternatives(of)) if (one.description) return one.description;
  return "";
}
