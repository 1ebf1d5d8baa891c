// What pauses hold over time, and of that what is innocent: a line a run, with the time that is shown.

const TITLES = { held: "Held by pauses", innocent: "Of that, innocent" };
const HIGH = 120, LEFT = 56, RIGHT = 8, TOP = 22, BOTTOM = 20;

const size = (bytes) => (bytes >= 1e6 ? `${bytes / 1e6} MB` : bytes ? `${bytes / 1e3} KB` : "0");

// A step that divides a range into two to five parts.
function stepOf(most) {
  const unit = 10 ** Math.floor(Math.log10(most));
  return most / unit > 5 ? 2 * unit : most / unit > 2 ? unit : unit / 2;
}

export class Curves {
  // `runs` are `{ history, colour }`, `seek` is called with the time of a click.
  constructor(parent, runs, { begin, end, seek }) {
    Object.assign(this, { runs, begin, end });
    this.most = Math.max(1, ...runs.flatMap(({ history }) => [...history.curves().held]));
    const place = document.createElement("div");
    place.className = "cw-curves";
    parent.append(place);
    this.canvases = Object.keys(TITLES).map((key) => {
      const canvas = document.createElement("canvas");
      canvas.setAttribute("role", "img");
      canvas.setAttribute("aria-label", `${TITLES[key]}, over time`);
      canvas.addEventListener("click", ({ offsetX }) => {
        const share = (offsetX - LEFT) / (canvas.clientWidth - LEFT - RIGHT);
        seek(begin + Math.min(Math.max(share, 0), 1) * (end - begin));
      });
      place.append(canvas);
      return [key, canvas];
    });
  }

  fit(ratio) {
    for (const [, canvas] of this.canvases) {
      canvas.style.height = `${HIGH}px`;
      canvas.width = Math.round(canvas.clientWidth * ratio);
      canvas.height = Math.round(HIGH * ratio);
      canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
    }
  }

  draw(time, theme) {
    for (const [key, canvas] of this.canvases) this.one(key, canvas, time, theme);
  }

  one(key, canvas, now, theme) {
    const pen = canvas.getContext("2d"), wide = canvas.clientWidth, { begin, end, most } = this;
    const x = (time) => LEFT + ((wide - LEFT - RIGHT) * (time - begin)) / (end - begin || 1);
    const y = (bytes) => HIGH - BOTTOM - ((HIGH - TOP - BOTTOM) * bytes) / most;
    pen.clearRect(0, 0, wide, HIGH);
    pen.lineWidth = 1;
    pen.font = "600 12px system-ui, sans-serif";
    pen.textAlign = "left";
    pen.fillStyle = theme.ink;
    pen.fillText(TITLES[key], LEFT, 13);
    pen.font = "11px system-ui, sans-serif";
    pen.fillStyle = theme.soft;
    pen.strokeStyle = theme.line;
    pen.textAlign = "right";
    for (let bytes = 0; bytes <= most; bytes += stepOf(most)) {
      line(pen, [[LEFT, y(bytes)], [wide - RIGHT, y(bytes)]]);
      pen.fillText(size(bytes), LEFT - 6, y(bytes) + 4);
    }
    const us = end / 1e6, step = stepOf(us);
    for (let at = Math.ceil(begin / 1e6 / step) * step; at <= us; at += step) {
      pen.textAlign = at ? "center" : "left";
      pen.fillText(at ? at.toLocaleString("en") : "0 µs", x(at * 1e6), HIGH - 5);
    }
    pen.lineWidth = 1.6;
    for (const { history, colour } of this.runs) {
      const { times, [key]: values } = history.curves();
      pen.strokeStyle = colour || theme.accent;
      line(pen, [...times].map((time, at) => [x(time), y(values[at])]).filter(([at]) => at <= wide - RIGHT));
    }
    pen.strokeStyle = theme.ink;
    pen.lineWidth = 1.2;
    line(pen, [[x(now), TOP], [x(now), HIGH - BOTTOM]]);
  }
}

function line(pen, points) {
  pen.beginPath();
  points.forEach(([x, y], at) => (at ? pen.lineTo(x, y) : pen.moveTo(x, y)));
  pen.stroke();
}
