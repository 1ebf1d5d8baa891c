// Texts that the reader has edited, by the address of their scenario, for as long as the tab is open.
const KEY = "clearway-edits", MOST = 50;

let kept;
try { kept = new Map(JSON.parse(sessionStorage.getItem(KEY)) ?? []); } catch { kept = new Map(); }

export const draftOf = (address) => kept.get(address) ?? null;

// With null, the scenario is as it was.
export function keep(address, text) {
  kept.delete(address);
  if (text !== null) kept.set(address, text);
  if (kept.size > MOST) kept.delete(kept.keys().next().value);
  // A browser may refuse to store anything: then edits last until the page is left.
  try { sessionStorage.setItem(KEY, JSON.stringify([...kept])); } catch { /* as said */ }
}
