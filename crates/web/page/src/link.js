// A link holds a scene or a scenario after its "#", and what to show of it: read by this page alone. Texts are packed,
// so that a link fits into a message. Its parts, joined by "&":
// `scene=ID`; `s=` the text, if it is not the scene's own; `base=` the text of the pinned run, likewise; `flow`, if it is
// run at flow level; `t=` the moment in picoseconds; `packet=` the chosen packet's row, `in=` the run it is of (0: the
// pinned one); `digest=` of the run that was seen.

const MOST = 1_000_000;

async function through(bytes, stream, most = Infinity) {
  const reader = new Blob([bytes]).stream().pipeThrough(stream).getReader();
  const parts = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    if (size > most) {
      await reader.cancel();
      throw new Error(`it holds more than ${most.toLocaleString("en")} bytes`);
    }
    parts.push(value);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

async function packed(text) {
  const bytes = await through(new TextEncoder().encode(text), new CompressionStream("deflate-raw"));
  const words = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  return words.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

async function unpacked(packed) {
  if (!/^[\w-]*$/.test(packed)) throw new Error("it is damaged");
  const words = atob(packed.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = Uint8Array.from(words, (letter) => letter.charCodeAt(0));
  const text = await through(bytes, new DecompressionStream("deflate-raw"), MOST);
  return new TextDecoder("utf-8", { fatal: true }).decode(text);
}

// The fragment of what is seen; what is null or undefined is left out.
export async function pack({ scene, text, base, level, time, packet, panel, digest }) {
  const has = (name, value) => (value === null || value === undefined ? [] : [`${name}=${value}`]);
  const texts = [has("s", text && await packed(text)), has("base", base && await packed(base))];
  const chosen = [...has("t", time), ...has("packet", packet), ...has("in", panel), ...has("digest", digest)];
  return `#${[...has("scene", scene), ...(level === "flow" ? ["flow"] : []), ...texts.flat(), ...chosen].join("&")}`;
}

// The request of a fragment, with the parts of `pack`, or null. Throws an error with words for the reader.
export async function unpack(fragment) {
  const parts = fragment.replace(/^#/, "").split("&").map((part) => /^([^=]*)=?(.*)$/s.exec(part).slice(1));
  const asked = new Map(parts), { scene, s, base, digest } = Object.fromEntries(parts);
  if (scene === undefined && s === undefined) return null;
  const number = (name) => (/^\d{1,16}$/.test(asked.get(name)) ? Number(asked.get(name)) : null);
  try {
    return {
      scene: scene ?? null, level: asked.has("flow") ? "flow" : "packet", digest: digest ?? null,
      text: s === undefined ? null : await unpacked(s), base: base === undefined ? null : await unpacked(base),
      time: number("t"), packet: number("packet"), panel: number("in") ?? 0,
    };
  } catch (error) {
    throw new Error(`the link holds no scenario: ${error.message || "it is damaged"}`);
  }
}
