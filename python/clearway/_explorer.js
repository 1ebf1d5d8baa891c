// Filters the flows of a report, and says where the time of the one that is clicked went; _explorer.py draws the page.
"use strict";
document.addEventListener("clearway-charts", () => {
  const { runs, spent, packets } = JSON.parse(document.getElementById("explorer-data").textContent);
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

  const draw = () => {
    const wanted = choices.filter((choice) => choice.value).map((choice) => [flows[choice.dataset.column], choice.value]);
    const shown = every.filter((at) => wanted.every(([column, value]) => column[at] === value));
    model("shown").indices = shown;
    runs.forEach((_, run) => {
      const mine = shown.filter((at) => flows.run[at] === run);
      const order = mine.filter((at) => flows.done[at]).sort((a, b) => flows.slowdown[a] - flows.slowdown[b]);
      const all = mine.reduce((sum, at) => sum + flows.weight[at], 0);
      let sum = 0;
      const y = order.map((at) => (sum += flows.weight[at]) / all);
      model(`shares${run}`).data = { x: order.map((at) => flows.slowdown[at]), y };
    });
    const count = Math.round(shown.reduce((sum, at) => sum + flows.weight[at], 0));
    const done = shown.filter((at) => flows.done[at]), weight = done.reduce((sum, at) => sum + flows.weight[at], 0);
    const mean = done.reduce((sum, at) => sum + flows.weight[at] * flows.slowdown[at], 0) / weight;
    counted.textContent = `${count.toLocaleString("en")} flows` + (weight ? `, mean slowdown ${number(mean)}` : "");
    list(shown);
  };

  source.selected.properties.indices.change.connect(() => explain(source.selected.indices[0]));
  for (const choice of choices) choice.onchange = draw;
  draw();
});
