// Filters the flows of a report, and says where the time of the one that is clicked went; explorer.py draws the page.
"use strict";
document.addEventListener("clearway-charts", () => {
  const { runs, lines, spent, packets } = JSON.parse(document.getElementById("explorer-data").textContent);
  const model = (name) => Bokeh.documents.map((one) => one.get_model_by_name(name)).find((found) => found);
  const source = model("flows"), flows = source.data, every = [...flows.flow.keys()];
  const choices = [...document.querySelectorAll("#filters select")];
  const place = document.getElementById("flow"), slowest = document.getElementById("slowest");
  const counted = document.getElementById("counted");
  const number = (value) => value.toLocaleString("en", { maximumSignificantDigits: 4 });
  const element = (tag, parent, text, attributes = {}) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    parent?.append(made);
    return made;
  };

  // The flow that is slower than half of the weight of these.
  const median = (some) => {
    const order = some.toSorted((a, b) => flows.slowdown[a] - flows.slowdown[b]);
    let left = order.reduce((sum, at) => sum + flows.weight[at], 0) / 2;
    return order.find((at) => (left -= flows.weight[at]) <= 0) ?? order[order.length - 1];
  };

  const said = (at) => `Flow ${flows.flow[at]} of ${flows.name[at]}: host${flows.src[at]} → host${flows.dst[at]}`;

  const explain = (at) => {
    place.replaceChildren();
    if (at === undefined) return;
    element("h3", place, said(at));
    const what = `${flows.bytes[at].toLocaleString("en")} B of class ${flows.kind[at]} over ${flows.transport[at]}`;
    if (!flows.done[at]) {
      element("p", place, `${what}. It began at ${number(flows.start_ms[at])} ms and did not complete (${flows.status[at]}).`);
      return;
    }
    const again = packets && flows.resent[at] ? ` ${flows.resent[at]} packets were sent again.` : "";
    element("p", place, `${what}, from ${number(flows.start_ms[at])} ms. It took ${number(flows.fct_us[at])} µs, ` +
      `${number(flows.slowdown[at])} times the ${number(flows.ideal_us[at])} µs that it takes alone.${again}`);
    if (!packets) return;
    const alike = every.filter((other) => flows.done[other] && flows.run[other] === flows.run[at] &&
      flows.size[other] === flows.size[at] && flows.transport[other] === flows.transport[at]);
    const usual = median(alike);
    const table = element("table", place, undefined, { class: "spent" });
    const head = element("tr", element("thead", table));
    const titles = ["its time, in µs", "this flow", `the median ${flows.size[at]} flow`, "more than that"];
    titles.forEach((title, index) => element("th", head, title, index ? {} : { class: "text" }));
    const body = element("tbody", table);
    const most = Math.max(...spent.map(([column]) => flows[column][at]));
    for (const [column, label, colour] of spent) {
      const row = element("tr", body), name = element("td", row, undefined, { class: "text" });
      element("span", name, undefined, { class: "dot", style: `background:${colour}` });
      name.append(label);
      const mine = element("td", row, number(flows[column][at]));
      mine.style.backgroundImage = `linear-gradient(to left, ${colour}66 ${100 * flows[column][at] / most}%, transparent 0)`;
      element("td", row, number(flows[column][usual]));
      element("td", row, number(flows[column][at] - flows[column][usual]));
    }
    element("p", place, `The median of its size has a slowdown of ${number(flows.slowdown[usual])} (flow ${flows.flow[usual]}). ` +
      "The parts are those of the packet that completed the flow; they add up to its completion time.", { class: "note" });
  };

  const select = (at) => { source.selected.indices = [at]; place.scrollIntoView({ block: "nearest", behavior: "smooth" }); };

  const list = (shown) => {
    slowest.replaceChildren();
    const order = shown.toSorted((a, b) => flows.done[a] - flows.done[b] || flows.slowdown[b] - flows.slowdown[a]);
    const head = element("tr", element("thead", slowest));
    const titles = ["The slowest of them", "", "class", "transport", "bytes", "start, ms", "took, µs", "slowdown"];
    titles.forEach((title, index) => element("th", head, title, index < 4 ? { class: "text" } : {}));
    const body = element("tbody", slowest);
    for (const at of order.slice(0, 10)) {
      const row = element("tr", body), cell = element("td", row, undefined, { class: "text" });
      element("button", cell, `flow ${flows.flow[at]} of ${flows.name[at]}`, { type: "button" }).onclick = () => select(at);
      const texts = [`host${flows.src[at]} → host${flows.dst[at]}`, flows.kind[at], flows.transport[at]];
      for (const text of texts) element("td", row, text, { class: "text" });
      const took = flows.done[at] ? [number(flows.fct_us[at]), number(flows.slowdown[at])] : [flows.status[at], "–"];
      for (const text of [flows.bytes[at].toLocaleString("en"), number(flows.start_ms[at]), ...took]) element("td", row, text);
    }
  };

  // Sources of other charts by flow, with what is there while nothing is filtered.
  const others = (kind) => lines.map((_, line) => model(`${kind} ${line}`)).map((one) => one && { one, all: one.data });
  const sizes = { mean: others("size mean"), p99: others("size p99") };
  const distributions = { fct_us: others("share fct_ps"), slowdown: others("share slowdown") };
  const isOf = ({ run, kinds, transports }) => (at) =>
    flows.run[at] === run && kinds.includes(flows.kind[at]) && transports.includes(flows.transport[at]);
  const weigh = (some) => some.reduce((sum, at) => sum + flows.weight[at], 0);
  // The value below which such a share of the weight of these flows is.
  const quantile = (some, column, share) => {
    const order = some.toSorted((a, b) => flows[column][a] - flows[column][b]);
    let left = weigh(some) * share;
    const found = order.find((at) => (left -= flows.weight[at]) <= 1e-9) ?? order[order.length - 1];
    return flows[column][found];
  };
  // The point of slowdown by flow size that was clicked: its line, sizes, and words.
  let clicked;
  const within = ({ low, high }) => (at) => flows.bytes[at] > low && flows.bytes[at] <= high;

  // The charts above of the flows that the filters leave.
  const redraw = (shown, filtered) => lines.forEach((line, place) => {
    const mine = shown.filter(isOf(line)), done = mine.filter((at) => flows.done[at]);
    for (const statistic in sizes) {
      const of = sizes[statistic][place];
      if (!of) continue;
      const found = { x: [], y: [], flows: [], low: [], high: [] };
      if (filtered) for (const [index, low] of [...of.all.low].entries()) {
        const high = of.all.high[index], some = done.filter(within({ low, high }));
        if (!some.length) continue;
        const mean = some.reduce((sum, at) => sum + flows.weight[at] * flows.slowdown[at], 0) / weigh(some);
        const point = [quantile(some, "bytes", 0.5), statistic === "mean" ? mean : quantile(some, "slowdown", 0.99)];
        [...point, Math.round(weigh(some)), low, high].forEach((value, at) => Object.values(found)[at].push(value));
      }
      of.one.selected.indices = [];
      of.one.data = filtered ? found : of.all;
    }
    for (const column in distributions) {
      const of = distributions[column][place], all = weigh(mine);
      if (!of) continue;
      const order = done.toSorted((a, b) => flows[column][a] - flows[column][b]);
      let sum = 0;
      const y = order.map((at) => (sum += flows.weight[at]) / all);
      of.one.data = filtered ? { x: order.map((at) => flows[column][at]), y } : of.all;
    }
  });

  const group = document.getElementById("group");
  const tellGroup = () => {
    group.replaceChildren();
    if (!clicked) return;
    const { line, low, high } = clicked;
    group.append(`Only flows of ${lines[line].name} of ${Math.floor(low + 1).toLocaleString("en")} to ` +
      `${Math.floor(high).toLocaleString("en")} B, the point that was clicked. `);
    element("button", group, "Show all", { type: "button" }).onclick = () => { clicked = undefined; draw(); };
  };

  const draw = () => {
    const wanted = choices.filter((choice) => choice.value).map((choice) => [flows[choice.dataset.column], choice.value]);
    const left = every.filter((at) => wanted.every(([column, value]) => column[at] === value));
    redraw(left, wanted.length > 0);
    tellGroup();
    const shown = clicked ? left.filter(isOf(lines[clicked.line])).filter(within(clicked)) : left;
    model("shown").indices = shown;
    runs.forEach((_, run) => {
      const mine = shown.filter((at) => flows.run[at] === run);
      const order = mine.filter((at) => flows.done[at]).sort((a, b) => flows.slowdown[a] - flows.slowdown[b]);
      const all = mine.reduce((sum, at) => sum + flows.weight[at], 0);
      let sum = 0;
      const y = order.map((at) => (sum += flows.weight[at]) / all);
      // Bokeh complains of a logarithmic axis with nothing on it.
      model(`shares${run}`).data = order.length ? { x: order.map((at) => flows.slowdown[at]), y } : { x: [1, 1], y: [0, 0] };
    });
    const count = Math.round(shown.reduce((sum, at) => sum + flows.weight[at], 0));
    const done = shown.filter((at) => flows.done[at]), weight = done.reduce((sum, at) => sum + flows.weight[at], 0);
    const mean = done.reduce((sum, at) => sum + flows.weight[at] * flows.slowdown[at], 0) / weight;
    counted.textContent = `${count.toLocaleString("en")} flows` + (weight ? `, mean slowdown ${number(mean)}` : "");
    list(shown);
  };

  source.selected.properties.indices.change.connect(() => explain(source.selected.indices[0]));
  for (const statistic in sizes) sizes[statistic].forEach((of, line) => of?.one.selected.properties.indices.change.connect(() => {
    const [at] = of.one.selected.indices;
    if (at === undefined) return;
    clicked = { line, low: of.one.data.low[at], high: of.one.data.high[at] };
    draw();
    document.getElementById("flow-by-flow").scrollIntoView({ block: "start", behavior: "smooth" });
  }));
  for (const choice of choices) choice.onchange = draw;
  draw();
});
