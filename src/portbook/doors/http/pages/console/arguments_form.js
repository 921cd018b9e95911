// Arguments as a form or as JSON; both are the same arguments.

import { button, h, say } from "./dom.js";
import { parseExact } from "./exact_json.js";
import { FieldProblem } from "./field_value.js";
import { formOf, showProblems } from "./form.js";

/** What people fill in before a call. */
export class ArgumentsForm {
  constructor(schema) {
    this.form = formOf(schema);
    this.isRaw = this.form.fields.length === 0 && schema.additionalProperties !== false;
    this.raw = h(
      "textarea",
      { class: "code raw", rows: "8", spellcheck: "false", "aria-label": "Arguments as JSON" },
      "{}",
    );
    this.place = h("div", {});
    this.problems = h("p", { class: "bad", role: "alert" });
    this.toggle = button("", () => this.change());
    this.element = h(
      "div",
      {},
      h("div", { class: "row between" }, h("h3", {}, "Arguments"), this.toggle),
      this.place,
      this.problems,
    );
    this.draw();
  }

  draw() {
    this.toggle.textContent = this.isRaw ? "As a form" : "As JSON";
    const none = h("p", { class: "dim" }, "It takes no arguments.");
    this.place.replaceChildren(this.isRaw ? this.raw : this.form.fields.length ? this.form.element : none);
  }

  change() {
    const given = this.read();
    if (given === null) return;
    if (this.isRaw) this.form.write(given);
    else this.raw.value = JSON.stringify(given, null, 2);
    this.isRaw = !this.isRaw;
    this.draw();
  }

  /** Return the arguments, or null where they cannot be read; it says why. */
  read() {
    this.show([]);
    try {
      return this.isRaw ? parseExact(this.raw.value) : this.form.read();
    } catch (problem) {
      if (problem instanceof FieldProblem) this.show([problem]);
      else say(this.problems, `These arguments are not JSON: ${problem.message}`);
      return null;
    }
  }

  show(problems) {
    const rest = this.isRaw ? problems : showProblems(this.element, problems);
    say(this.problems, rest.map(({ pointer, message }) => `${pointer || "(root)"}: ${message}`).join("; "));
    this.element
      .querySelector(".problem:not(:empty)")
      ?.parentElement.querySelector("input, textarea, select")
      ?.focus();
  }
}
