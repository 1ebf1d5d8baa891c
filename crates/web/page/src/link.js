// A link holds a scenario after its "#": packed, so that it fits into a message, and read by this page alone.

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

export async function pack(text, level) {
  const bytes = await through(new TextEncoder().encode(text), new CompressionStream("deflate-raw"));
  const words = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  const packed = words.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
  return `#${level === "flow" ? "flow&" : ""}s=${packed}`;
}

// The request of a fragment: `{ scene }`, `{ text, level }`, or null. Throws an error with words for the reader.
export async function unpack(fragment) {
  const asked = fragment.replace(/^#/, "");
  const scene = /^scene=([\w-]{1,60})$/.exec(asked);
  if (scene) return { scene: scene[1] };
  const found = /^(flow&)?s=(.*)$/.exec(asked);
  if (!found) return null;
  try {
    if (!/^[\w-]*$/.test(found[2])) throw new Error("it is damaged");
    const words = atob(found[2].replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(words, (letter) => letter.charCodeAt(0));
    const text = await through(bytes, new DecompressionStream("deflate-raw"), MOST);
    return { text: new TextDecoder("utf-8", { fatal: true }).decode(text), level: found[1] ? "flow" : "packet" };
  } catch (error) {
    throw new Error(`the link holds no scenario: ${error.message || "it is damaged"}`);
  }
}
