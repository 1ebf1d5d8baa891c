// A lesson: a text whose numbers are those of its scene's run, phrases that lead to a moment of the picture, and questions
// that are answered before the run that decides them.
import { filled, namesIn } from "./numbers.js";
import { element } from "clearway/viewer.js";

// Where a phrase leads: `{ time, row }` in a run's packets; null where there is no such thing.
export function momentOf(history, where) {
  const { rows, time_ps: times, arrive } = history, [what, kind] = where.split(":");
  const first = (is) => {
    for (let row = 0; row < rows; row++) if (is(row)) return { row, time: (times[row] + arrive[row]) / 2 };
    return null;
  };
  if (what === "packet") return first((row) => !history.lost[row] && history.kindNames[history.kind[row]] === kind);
  if (what === "marked") return first((row) => !history.lost[row] && history.marked[row] > 0);
  if (what === "lost") return history.lostRows.length ? { row: history.lostRows[0], time: times[history.lostRows[0]] } : null;
  if (what === "held") return history.held.length ? { row: -1, time: history.held[0].from } : null;
  if (what !== "longest-queue") throw new Error(`no phrase leads to ${where}`);
  return history.longest();
}

// The answer that the runs give: the place of the one with the largest number, or of "about the same".
export function verdictOf({ answers, alike = 0 }, known) {
  const values = answers.map(([, name]) => (typeof name === "number" ? name : known[name]?.value));
  if (!values.every(Number.isFinite)) return null;
  const sorted = [...values].sort((a, b) => b - a);
  return sorted[0] - sorted[1] <= alike * sorted[0] ? answers.length : values.indexOf(sorted[0]);
}

export class Lesson {
  // `seek` goes to where a phrase leads, `change` runs the scene with the lesson's change, `slide` with another value.
  constructor(parent, lesson, { seek, change, slide }) {
    Object.assign(this, { lesson, seek });
    parent.replaceChildren();
    this.text = element(parent, "div");
    this.questions = element(parent, "form", undefined, { "aria-label": "Predict" });
    this.questions.addEventListener("submit", (event) => {
      event.preventDefault();
      this.isCommitted = true;
      this.ask();
      change();
    });
    if (lesson.slider) this.slider(parent, lesson.slider, slide);
    this.chosen = lesson.predictions.map(() => -1);
    this.tell(null);
  }

  // Fills text and verdicts: `known` are the numbers of the scene's run and, with "now.", of the changed one.
  tell(known) {
    this.known = known;
    this.text.replaceChildren();
    for (const token of this.lesson.tokens) {
      if (token.type === "heading") element(this.text, "h3", token.text);
      if (token.type === "paragraph") this.inline(element(this.text, "p"), token.tokens);
    }
    this.ask();
  }

  inline(parent, tokens) {
    for (const { type, text, href } of tokens) {
      if (type === "codespan") element(parent, "code", text);
      else if (type === "link") {
        const phrase = element(parent, "button", filled(text, this.known), { type: "button", class: "phrase", "data-where": href });
        phrase.addEventListener("click", () => this.seek(href));
      } else parent.append(filled(text, this.known));
    }
  }

  ask() {
    const { questions, lesson: { predictions }, known, isCommitted } = this;
    questions.replaceChildren();
    predictions.forEach((one, at) => {
      const field = element(questions, "fieldset");
      element(field, "legend", one.ask);
      const choices = [...one.answers.map(([words]) => words), ...(one.alike ? ["about the same"] : [])];
      choices.forEach((words, choice) => {
        const label = element(field, "label"), input = element(label, "input", undefined, { type: "radio", name: at });
        input.disabled = isCommitted;
        input.checked = this.chosen[at] === choice;
        input.addEventListener("change", () => { this.chosen[at] = choice; this.commit.disabled = !this.isAnswered; });
        label.append(words);
      });
      const right = isCommitted && known && namesIn(one.verdict).every((name) => known[name]) ? verdictOf(one, known) : null;
      if (right === null) return;
      const isRight = right === this.chosen[at];
      const verdict = element(field, "p", `${isRight ? "✓ Right" : `✗ It is: ${choices[right]}`}. ${filled(one.verdict, known)}`);
      verdict.className = `verdict ${isRight ? "right" : "not"}`;
    });
    this.commit = element(questions, "button", "Commit, change and run", { type: "submit" });
    this.commit.disabled = !this.isAnswered;
    this.commit.hidden = isCommitted || !predictions.length;
  }

  get isAnswered() { return this.chosen.every((choice) => choice >= 0); }

  slider(parent, { label, key, values }, slide) {
    const whole = element(parent, "label", `${label} `, { class: "slider" }), most = values.length - 1;
    const input = element(whole, "input", undefined, { type: "range", min: 0, max: most, step: 1 });
    const output = element(whole, "output");
    this.move = (text) => {
      const at = values.findIndex((value) => text.includes(`${key} = ${JSON.stringify(value)}`));
      if (at >= 0) input.value = at;
      output.textContent = values[at] ?? "";
    };
    input.addEventListener("input", () => { output.textContent = values[Number(input.value)]; });
    input.addEventListener("change", () => slide(key, values[Number(input.value)]));
  }
}
