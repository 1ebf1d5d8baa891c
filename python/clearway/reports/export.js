// Below each row of charts and each table: buttons that save it. Charts as PNG, SVG or PDF, tables as LaTeX or TSV.
(() => {
  const save = (content, name, type) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([content], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };

  const nameOf = (element) => {
    const title = element.closest("section")?.querySelector("h2")?.textContent ?? document.title;
    return title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "") || "clearway";
  };

  // The views of a row's charts.
  const viewsOf = (figure) => (
    [...figure.querySelectorAll("[data-root-id]")].map((root) => Bokeh.index.get_by_id(root.dataset.rootId))
  );

  // Charts side by side as one SVG, on white.
  const svgOf = (figure) => {
    const parts = viewsOf(figure).map((view) => view.export("svg").ctx.get_svg());
    const sizes = parts.map((part) => [Number(part.getAttribute("width")), Number(part.getAttribute("height"))]);
    const width = sizes.reduce((all, [wide]) => all + wide, 0), height = Math.max(...sizes.map(([, high]) => high));
    let left = 0;
    const placed = parts.map((part, at) => {
      part.setAttribute("x", left);
      left += sizes[at][0];
      return new XMLSerializer().serializeToString(part);
    });
    const text = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" ` +
      `viewBox="0 0 ${width} ${height}"><rect width="100%" height="100%" fill="white"/>${placed.join("")}</svg>`;
    return { text, width, height };
  };

  // The same as pixels, three for each of the screen's.
  const canvasOf = async (figure) => {
    const { text, width, height } = svgOf(figure), picture = new Image(), canvas = document.createElement("canvas");
    picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
    await picture.decode();
    [canvas.width, canvas.height] = [3 * width, 3 * height];
    canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
    return { canvas, width, height };
  };

  // A PDF of one page that holds a JPEG.
  const pdfOf = (jpeg, pixels, size) => {
    const encode = (text) => new TextEncoder().encode(text), [wide, high] = size.map((one) => (0.75 * one).toFixed(2));
    const draw = `q ${wide} 0 0 ${high} 0 0 cm /I Do Q`, parts = [], offsets = [];
    let length = 0;
    const add = (part) => { parts.push(part); length += part.length; };
    const object = (...content) => {
      offsets.push(length);
      add(encode(`${offsets.length} 0 obj\n`));
      for (const part of content) add(typeof part === "string" ? encode(part) : part);
      add(encode("\nendobj\n"));
    };
    add(encode("%PDF-1.4\n"));
    object("<< /Type /Catalog /Pages 2 0 R >>");
    object("<< /Type /Pages /Kids [3 0 R] /Count 1 >>");
    object(`<< /Type /Page /Parent 2 0 R /MediaBox [0 0 ${wide} ${high}] /Contents 5 0 R ` +
      "/Resources << /XObject << /I 4 0 R >> >> >>");
    object(`<< /Type /XObject /Subtype /Image /Width ${pixels[0]} /Height ${pixels[1]} /ColorSpace /DeviceRGB ` +
      `/BitsPerComponent 8 /Filter /DCTDecode /Length ${jpeg.length} >>\nstream\n`, jpeg, "\nendstream");
    object(`<< /Length ${draw.length} >>\nstream\n${draw}\nendstream`);
    const at = length, entries = offsets.map((offset) => `${String(offset).padStart(10, "0")} 00000 n \n`).join("");
    add(encode(`xref\n0 ${offsets.length + 1}\n0000000000 65535 f \n${entries}trailer\n` +
      `<< /Size ${offsets.length + 1} /Root 1 0 R >>\nstartxref\n${at}\n%%EOF\n`));
    return new Blob(parts);
  };

  const saved = {
    PNG: async (figure) => {
      const { canvas } = await canvasOf(figure);
      canvas.toBlob((blob) => save(blob, `${nameOf(figure)}.png`, "image/png"));
    },
    SVG: async (figure) => save(svgOf(figure).text, `${nameOf(figure)}.svg`, "image/svg+xml"),
    PDF: async (figure) => {
      const { canvas, width, height } = await canvasOf(figure);
      const jpeg = Uint8Array.from(atob(canvas.toDataURL("image/jpeg", 0.95).split(",")[1]), (one) => one.charCodeAt(0));
      save(pdfOf(jpeg, [canvas.width, canvas.height], [width, height]), `${nameOf(figure)}.pdf`, "application/pdf");
    },
  };

  // The rows of a table as texts. A cell that spans several columns is followed by empty ones.
  const rowsOf = (table) => {
    const down = [];
    return [...table.rows].map((row) => {
      const texts = [];
      const skip = () => { while (down[texts.length] > 0) { down[texts.length]--; texts.push(""); } };
      for (const cell of row.cells) {
        skip();
        for (let span = 0; span < cell.colSpan; span++) {
          if (cell.rowSpan > 1) down[texts.length] = cell.rowSpan - 1;
          texts.push(span ? "" : cell.innerText.trim().replace(/\s+/g, " "));
        }
      }
      skip();
      return texts;
    });
  };

  const SIGNS = { "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "µ": "$\\mu$",
    "–": "--", "→": "$\\to$", "✓": "yes", "✗": "no" };
  const inLatex = (text) => text.replace(/[\\~^µ–→✓✗]|[&%$#_{}]/g, (sign) => SIGNS[sign] ?? `\\${sign}`);

  const latexOf = (table) => {
    const rows = rowsOf(table), head = table.tHead?.rows.length ?? 0, count = Math.max(...rows.map((row) => row.length));
    const lines = rows.map((row) => `${Array.from({ length: count }, (_, at) => inLatex(row[at] ?? "")).join(" & ")} \\\\`);
    lines.splice(head, 0, "\\midrule");
    return `\\begin{tabular}{l${"r".repeat(count - 1)}}\n\\toprule\n${lines.join("\n")}\n\\bottomrule\n\\end{tabular}\n`;
  };

  const ofTables = {
    LaTeX: (table) => save(latexOf(table), `${nameOf(table)}.tex`, "text/plain"),
    TSV: (table) => save(`${rowsOf(table).map((row) => row.join("\t")).join("\n")}\n`, `${nameOf(table)}.tsv`, "text/plain"),
  };

  const offer = (element, ways) => {
    const row = document.createElement("p");
    row.className = "save";
    row.append("Save as ");
    for (const [way, act] of Object.entries(ways)) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = way;
      button.onclick = () => act(element);
      row.append(button);
    }
    element.after(row);
  };

  document.addEventListener("DOMContentLoaded", () => {
    for (const figure of document.querySelectorAll("figure:has(.charts)")) offer(figure, saved);
    for (const table of document.querySelectorAll("section > table")) offer(table, ofTables);
  });
})();
