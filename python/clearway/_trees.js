// Draws the congestion trees of each instant, from the data beside it; _trees.py says what is drawn and draws the first.
"use strict";
(() => {
  const figure = document.getElementById("trees");
  const { head, runs } = JSON.parse(document.getElementById("trees-data").textContent);
  const [ROOT, HELD, PART, BUSY, STOPPED, INNOCENT] = [3, 4, 8, "#e69f00", "#c2410c", "#0072b2"];
  const WHAT = ["", "paused", "hotspot", "root"];
  const svg = (name, attributes, parent) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    if (parent) parent.append(element);
    return element;
  };
  const size = (kb) => (kb >= 1000 ? (kb / 1000).toFixed(2) + " MB" : Math.round(kb) + " KB");
  const many = (count, what) => `<b>${count}</b> ${what}${count === 1 ? "" : "s"}`;

  const times = [...new Set(runs.flatMap((run) => run.times))].sort((a, b) => a - b);
  const last = times[times.length - 1];
  const places = [...figure.querySelectorAll(".panel")].map((panel, index) => ({
    run: runs[index], bars: panel.querySelector(".bars"), said: panel.querySelector(".said"), state: new Map(), frame: -1,
  }));

  // The last sample of a run by `time`; its length when the run is over.
  const frameAt = (run, time) => {
    if (time > run.times[run.times.length - 1]) return run.times.length;
    let low = 0, high = run.times.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (run.times[middle] <= time) low = middle + 1; else high = middle;
    }
    return low - 1;
  };

  const go = (place, frame) => {
    if (frame < place.frame) { place.state.clear(); place.frame = -1; }
    while (place.frame < frame && place.frame + 1 < place.run.changes.length) {
      const changes = place.run.changes[++place.frame];
      for (let at = 0; at < changes.length; at += 4) {
        if (changes[at + 1]) place.state.set(changes[at], changes.slice(at + 1, at + 4)); else place.state.delete(changes[at]);
      }
    }
    if (frame >= place.run.changes.length) { place.state.clear(); place.frame = place.run.changes.length; }
  };

  const bar = (run, link, [what, kb, percent], parent) => {
    const [x, y, toX, toY] = run.halves.slice(4 * link, 4 * link + 4);
    const group = svg("g", {}, parent);
    const look = { "stroke-width": (what & PART ? 0.8 : 1.8) + 7 * run.scale * Math.sqrt(kb / head.thickest) };
    if (what & HELD) look["stroke-dasharray"] = "4 1.5";
    const [splitX, splitY] = [toX + ((x - toX) * percent) / 100, toY + ((y - toY) * percent) / 100];
    if (percent < 100) svg("path", { ...look, d: `M${x} ${y}L${splitX} ${splitY}`, stroke: what & HELD ? STOPPED : BUSY }, group);
    if (percent) svg("path", { ...look, d: `M${splitX} ${splitY}L${toX} ${toY}`, stroke: INNOCENT }, group);
    if (what % HELD === ROOT) svg("circle", { cx: x, cy: y, r: 5.5 * run.scale }, group);
    const [from, to] = run.ends.slice(2 * link, 2 * link + 2).map((node) => run.names[node]);
    const held = what & PART ? ", some of it may not send" : what & HELD ? ", may not send" : "";
    const innocent = percent ? `, ${percent}% innocent` : "";
    svg("title", {}, group).textContent = `${from} → ${to}: ${WHAT[what % HELD]}${held}, ${size(kb)}${innocent}`;
  };

  const draw = (place, time) => {
    const { run, state, bars, said } = place;
    const frame = frameAt(run, time);
    go(place, frame);
    bars.replaceChildren();
    let [roots, ports] = [0, 0];
    for (const [link, now] of [...state].sort((a, b) => (a[1][0] % HELD) - (b[1][0] % HELD))) {
      roots += now[0] % HELD === ROOT;
      ports += (now[0] & HELD) / HELD;
      bar(run, link, now, bars);
    }
    if (frame >= run.times.length) { said.textContent = "This run is over: all of its flows have ended."; return; }
    const [held, innocent] = frame < 0 ? [0, 0] : [run.held[frame], run.innocent[frame]];
    const share = held ? ` (${Math.round((100 * innocent) / held)}%)` : "";
    said.innerHTML = `${many(roots, "root")} · ${many(ports, "port")} paused · <b>${size(held)}</b> held · `
      + `<b class=innocent>${size(innocent)}${share}</b> innocent`;
  };

  // The curves under the panels, with a cursor each.
  const cursors = [];
  const [W, H, L, R, T, B] = [600, 130, 52, 8, 22, 20];
  const x = (time) => L + ((W - L - R) * time) / last;
  const step = (most) => { const unit = 10 ** Math.floor(Math.log10(most)); return most / unit > 5 ? 2 * unit : most / unit > 2 ? unit : unit / 2; };
  const curve = (title, key) => {
    const most = Math.max(1, ...runs.flatMap((run) => run.held));
    const y = (kb) => H - B - ((H - T - B) * kb) / most;
    const chart = svg("svg", { viewBox: `0 0 ${W} ${H}` });
    svg("text", { x: L, y: 13, class: "title" }, chart).textContent = title;
    for (let kb = 0; kb <= most; kb += step(most)) {
      svg("path", { d: `M${L} ${y(kb)}H${W - R}`, stroke: "#e7e9ed" }, chart);
      svg("text", { x: L - 6, y: y(kb) + 4, "text-anchor": "end" }, chart).textContent = kb >= 1000 ? kb / 1000 + " MB" : kb ? kb + " KB" : "0";
    }
    for (let us = 0; us <= last; us += step(last)) {
      svg("text", { x: x(us), y: H - 5, "text-anchor": us ? "middle" : "start" }, chart).textContent = us ? us.toLocaleString("en") : "0 µs";
    }
    for (const run of runs) {
      const line = run.times.map((time, index) => `${x(time).toFixed(1)} ${y(run[key][index]).toFixed(1)}`);
      svg("path", { d: "M" + line.join("L"), fill: "none", stroke: run.colour, "stroke-width": 1.6 }, chart);
    }
    cursors.push(svg("path", { stroke: "#1d2025", "stroke-width": 1.2 }, chart));
    chart.addEventListener("click", (event) => {
      const box = chart.getBoundingClientRect();
      stop();
      seek(((((event.clientX - box.left) / box.width) * W - L) / (W - L - R)) * last);
    });
    figure.querySelector(".curves").append(chart);
  };

  const [button, slider, output] = ["button", "input", "output"].map((name) => figure.querySelector(".bar " + name));
  let playing = null;
  const show = (index) => {
    const time = times[index];
    slider.value = index;
    output.textContent = `${time.toLocaleString("en", { maximumFractionDigits: 1 })} µs`;
    for (const place of places) draw(place, time);
    for (const cursor of cursors) cursor.setAttribute("d", `M${x(time)} ${T}V${H - B}`);
  };
  const seek = (time) => {
    let nearest = 0;
    times.forEach((known, index) => { if (Math.abs(known - time) < Math.abs(times[nearest] - time)) nearest = index; });
    show(nearest);
  };
  const stop = () => { playing = null; button.textContent = "▶"; button.setAttribute("aria-label", "Play"); };
  const play = () => {
    const token = (playing = {});
    button.textContent = "❚❚";
    button.setAttribute("aria-label", "Pause");
    const seconds = Math.min(30, Math.max(8, times.length / 12));
    const began = performance.now(), from = +slider.value >= times.length - 1 ? 0 : +slider.value;
    const frame = (now) => {
      if (playing !== token) return;
      const index = from + Math.floor(((now - began) / 1000 / seconds) * times.length);
      show(Math.min(index, times.length - 1));
      if (index < times.length - 1) requestAnimationFrame(frame); else stop();
    };
    requestAnimationFrame(frame);
  };

  curve("Held by pauses", "held");
  curve("Of that, innocent", "innocent");
  slider.max = times.length - 1;
  slider.addEventListener("input", () => { stop(); show(+slider.value); });
  button.addEventListener("click", () => (playing ? stop() : play()));
  const fromHash = () => { const asked = /t=([\d.]+)/.exec(location.hash); if (asked) { stop(); seek(+asked[1]); } return asked; };
  addEventListener("hashchange", fromHash);
  figure.querySelector(".bar").hidden = false;
  if (!fromHash()) seek(head.at);
})();
