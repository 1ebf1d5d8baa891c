// The editor of scenarios: CodeMirror, with what the scenario's schema knows and what the engine says.
import { autocompletion, closeCompletion, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { HighlightStyle, StreamLanguage, bracketMatching, syntaxHighlighting } from "@codemirror/language";
import { toml } from "@codemirror/legacy-modes/mode/toml";
import { lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { unifiedMergeView } from "@codemirror/merge";
import { Compartment, EditorState } from "@codemirror/state";
import { EditorView, drawSelection, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { pathAt } from "./schema.js";

const LOOKS = HighlightStyle.define([
  { tag: tags.comment, class: "cw-comment" },
  { tag: [tags.string, tags.number, tags.bool, tags.atom], class: "cw-value" },
  { tag: [tags.propertyName, tags.keyword], class: "cw-key" },
]);

// The keys and values that may stand at the cursor. Text comes from the schema, and is shown as text.
function completions(schema) {
  return (context) => {
    const before = context.state.doc.sliceString(0, context.pos);
    const { path, word, kind } = pathAt(before);
    if (!word && !context.explicit) return null;
    const options = kind === "value" ? schema().values(path) : schema().keys(path);
    const from = context.pos - word.length;
    return options.length ? { from, options: options.map((one) => ({ ...one, type: kind })) } : null;
  };
}

export class Editor {
  // `changed` is called when the reader has changed the text, `run` by Ctrl-Enter.
  constructor(parent, { schema, changed, run }) {
    // Marks the lines that differ from the pinned run's.
    this.pinned = new Compartment();
    this.state = (doc) => EditorState.create({
      doc,
      extensions: [
        keymap.of([
          { key: "Mod-Enter", run: () => (run(), true) },
          // Tab leaves the editor, as on any page.
          ...completionKeymap, ...lintKeymap, ...historyKeymap, ...defaultKeymap,
        ]),
        lineNumbers(), history(), drawSelection(), highlightActiveLine(), bracketMatching(), lintGutter(),
        StreamLanguage.define(toml), syntaxHighlighting(LOOKS),
        autocompletion({ override: [completions(schema)], icons: false }),
        EditorView.lineWrapping, this.pinned.of([]),
        EditorView.contentAttributes.of({ "aria-label": "Scenario, in TOML" }),
        EditorView.updateListener.of((update) => { if (update.docChanged) changed(this.text); }),
      ],
    });
    this.view = new EditorView({ parent, state: this.state("") });
  }

  // As the reader would: it can be undone.
  replace(text) {
    this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: text } });
  }

  get text() { return this.view.state.doc.toString(); }
  set text(text) { this.view.setState(this.state(text)); }

  // A run leaves nothing open.
  closeCompletion() { closeCompletion(this.view); }

  // Marks the lines that differ from a text, and shows its own above them; with null, none.
  pin(text) {
    const merged = text === null ? [] : unifiedMergeView({
      original: text, mergeControls: false, syntaxHighlightDeletions: false, allowInlineDiffs: false,
    });
    this.view.dispatch({ effects: this.pinned.reconfigure(merged) });
  }

  // Marks the line of an error, or none.
  mark(error) {
    const diagnostics = [];
    if (error) {
      const { doc } = this.view.state;
      const line = doc.line(Math.min(Math.max(error.line ?? 1, 1), doc.lines));
      diagnostics.push({ from: line.from, to: line.to, severity: "error", message: said(error) });
    }
    this.view.dispatch(setDiagnostics(this.view.state, diagnostics));
  }
}

// An error as the command line says it.
export function said({ line, key, message }) {
  return [line ? `scenario.toml:${line}` : "scenario.toml", key, message].filter(Boolean).join(": ");
}
