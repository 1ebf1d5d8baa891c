// Filters the lines of charts of many runs, and lists the runs of the point that is clicked; lines.py draws the page.
"use strict";
document.addEventListener("clearway-charts", () => {
  const model = (name) => Bokeh.documents.map((one) => one.get_model_by_name(name)).find((found) => found);
  const number = (value) => value.toLocaleString("en", { maximumSignificantDigits: 4 });
  const element = (tag, parent, text, attributes = {}) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    parent?.append(made);
    return made;
  };

  const begin = ({ name, panels, series, bands, columns, runs }) => {
    const place = document.querySelector(`[data-lines="${name}"]`);
    const below = document.querySelector(`[data-runs="${name}"]`);
    const choices = [...place.querySelectorAll("select")], labels = [...place.querySelectorAll("[data-series]")];
    const boxes = labels.map((label) => label.querySelector("input"));

    const draw = () => {
      const wanted = choices.filter((choice) => choice.value).map((choice) => [choice.dataset.axis, choice.value]);
      const left = series.map((kinds) => wanted.every(([axis, value]) => kinds[axis] === value));
      const shown = left.map((stays, at) => stays && boxes[at].checked);
      labels.forEach((label, at) => { label.hidden = !left[at]; });
      const few = shown.filter((one) => one).length <= bands;
      for (const panel of panels) {
        const rows = (of) => {
          const which = model(`${panel}-of-${of}`).data.series;
          return [...which.keys()].filter((row) => shown[which[row]]);
        };
        model(`${panel}-empty`).visible = rows("points").length === 0;
        for (const of of ["points", "lines"]) model(`${panel}-${of}`).indices = rows(of);
        model(`${panel}-bands`).visible = few;
      }
    };

    const list = (points, at) => {
      below.replaceChildren();
      if (at === undefined) return;
      element("h3", below, `${points.name[at]}: ${points.said[at]}`);
      const table = element("table", below), head = element("tr", element("thead", table));
      const rows = points.runs[at].map((run) => runs[run]);
      const words = (index) => rows.some((row) => typeof row[index] === "string");
      columns.forEach((title, index) => element("th", head, title, words(index) ? { class: "text" } : {}));
      const body = element("tbody", table);
      for (const row of rows) {
        const line = element("tr", body);
        row.forEach((value, index) => {
          const text = value === null ? "–" : typeof value === "number" ? number(value) : String(value);
          element("td", line, text, words(index) ? { class: "text" } : {});
        });
      }
      below.scrollIntoView({ block: "nearest", behavior: "smooth" });
    };

    for (const panel of panels) {
      const source = model(`${panel}-of-points`);
      source.selected.properties.indices.change.connect(() => {
        const at = source.selected.indices[0];
        // One point is selected at a time, in one chart.
        if (at !== undefined) {
          for (const other of panels) if (other !== panel) model(`${other}-of-points`).selected.indices = [];
        }
        const none = panels.every((one) => !model(`${one}-of-points`).selected.indices.length);
        if (at !== undefined || none) list(source.data, at);
      });
    }
    for (const control of [...choices, ...boxes]) control.onchange = draw;
    for (const button of place.querySelectorAll("button")) {
      button.onclick = () => {
        boxes.forEach((box, at) => { if (!labels[at].hidden) box.checked = Boolean(button.dataset.all); });
        draw();
      };
    }
    draw();
  };

  for (const said of document.querySelectorAll(".lines-data")) begin(JSON.parse(said.textContent));
});
