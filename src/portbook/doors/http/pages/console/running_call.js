// One call from the console: its progress, its questions, its answer.

import { block, button, facts, h, json, prose } from "./dom.js";
import { formOf, showProblems } from "./form.js";
import { request } from "./mcp.js";
import { callsHref, hrefOf } from "./place.js";
import { latency } from "./times.js";

const MOST_LINES = 200;
let tokens = 0;

/** A call that begins at once. `onProblems` is told what is wrong with its arguments; `again` repeats it. */
export class SteppedCall {
  constructor(tool, given, approvalId, onProblems, again) {
    this.tool = tool;
    this.given = given;
    this.approvalId = approvalId;
    this.onProblems = onProblems;
    this.again = again;
    this.began = performance.now();
    this.state = h("p", { class: "answer-state", role: "status" }, "Running");
    this.progress = h("div", { class: "progress" });
    this.log = h("pre", {
      class: "log",
      hidden: true,
      tabindex: "0",
      role: "log",
      "aria-label": "Messages of the tool",
    });
    this.body = h("div", {});
    this.stopper = new AbortController();
    this.stop = button("Cancel", () => this.stopper.abort());
    this.element = h(
      "article",
      { class: "card answer", "aria-label": `Answer of ${tool.name}` },
      h("header", {}, this.state, this.stop),
      this.progress,
      this.log,
      this.body,
    );
    this.run();
  }

  async run() {
    const meta = { progressToken: `console-${(tokens += 1)}` };
    if (this.approvalId) meta["portbook/approval_id"] = this.approvalId;
    const params = { name: this.tool.name, arguments: this.given, _meta: meta };
    const options = {
      onNotice: (...notice) => this.tell(...notice),
      onQuestion: (question) => this.question(question),
      signal: this.stopper.signal,
    };
    try {
      const { result, requestId } = await request("tools/call", params, options);
      this.end(result.isError ? "bad" : "good", result, requestId);
    } catch (problem) {
      if (problem.name === "AbortError") this.end("bad", { text: "Cancelled." });
      else this.end("bad", { text: problem.message, refusal: problem.data }, problem.requestId);
    }
  }

  tell(method, params) {
    if (method === "notifications/progress") {
      const bar = h("progress", {
        "aria-label": "Progress",
        max: params.total ?? 1,
        value: params.total ? params.progress : undefined,
      });
      const told = params.total ? `${params.progress} of ${params.total}` : String(params.progress);
      this.progress.replaceChildren(bar, h("span", {}, told, " ", params.message ?? ""));
    }
    if (method === "notifications/message") {
      this.log.hidden = false;
      this.log.append(
        h(
          "div",
          {},
          `${params.level}: ${typeof params.data === "string" ? params.data : JSON.stringify(params.data)}`,
        ),
      );
      while (this.log.children.length > MOST_LINES) this.log.firstChild.remove();
    }
  }

  /** Ask the person, and return the answer when it is given. */
  question({ message, requestedSchema }) {
    return new Promise((answer) => {
      const form = formOf(requestedSchema ?? { properties: {} });
      const done = (action, content) => {
        box.remove();
        answer(content ? { action, content } : { action });
      };
      const send = () => {
        try {
          done("accept", form.read());
        } catch (problem) {
          showProblems(form.element, [problem]);
        }
      };
      const box = h(
        "section",
        { class: "question", "aria-label": "The tool asks" },
        prose(message, { class: "strong" }),
        form.element,
        h(
          "div",
          { class: "row" },
          button("Answer", send, { class: "primary" }),
          button("Decline", () => done("decline")),
        ),
      );
      box.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
        event.stopPropagation();
        send();
      });
      this.body.append(box);
      box.querySelector("input, textarea, select")?.focus();
    });
  }

  // A stream has no header with the id of its request: its record is the newest of the tool's calls.
  end(kind, result, requestId = null) {
    const refusal = result.refusal ?? result._meta?.["portbook/refusal"] ?? {};
    this.element.classList.add(kind);
    this.stop.remove();
    this.progress.replaceChildren();
    const words = kind === "good" ? "Result" : (refusal.reason ?? "Error");
    this.state.replaceChildren(
      h("strong", {}, words),
      ` after ${latency(performance.now() - this.began)} `,
      h(
        "a",
        { href: callsHref({ tool: this.tool.name }, requestId ?? "") },
        requestId ? "its record" : "its calls",
      ),
    );
    this.body.replaceChildren(
      ...contentOf(result),
      this.approvalRow(refusal) ?? "",
      h("details", {}, h("summary", {}, "Arguments"), json(this.given, "Arguments")),
    );
    this.onProblems(refusal.violations ?? []);
  }

  approvalRow(refusal) {
    if (refusal.reason !== "APPROVAL_REQUIRED" || !refusal.approval_id) return null;
    this.approvalId = refusal.approval_id;
    return h(
      "div",
      { class: "row" },
      h(
        "a",
        { class: "button primary", href: hrefOf("waiting", refusal.approval_id) },
        "Decide it under Waiting",
      ),
      button("Repeat the call", this.again),
    );
  }
}

/** Make what a result holds: structured content, or the content as it comes. */
export function contentOf(result) {
  if (result.text !== undefined) return [block(result.text, "Answer")];
  if (result.structuredContent !== undefined && !result.isError)
    return [json(result.structuredContent, "Result")];
  return (result.content ?? result.contents ?? []).map(shownContent);
}

/** Make one block of content of MCP: a text, a link, or a note of what it is. */
export function shownContent(content) {
  const text = content.text ?? content.resource?.text;
  if (text !== undefined) return block(text, "Content");
  if (content.type === "resource_link")
    return facts([["resource", h("a", { href: hrefOf("tools", `resource:${content.uri}`) }, content.uri)]]);
  const data = content.data ?? content.blob ?? content.resource?.blob;
  if (data === undefined) return json(content, "Content");
  const size = `${Math.floor((data.length * 3) / 4)} bytes`;
  return facts([
    ["content", content.type ?? "data"],
    ["type", content.mimeType ?? content.resource?.mimeType],
    ["size", size],
  ]);
}
