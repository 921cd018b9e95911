// A call as a command for a terminal. Keys are never part of one: a variable stands for them.

import { block, button, h } from "./dom.js";
import { callsNeedKey } from "./keys.js";

function quoted(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** Return a call as a command of curl. */
export function curlOf(tool, given) {
  const url = new URL(`tools/${encodeURIComponent(tool)}`, document.baseURI).href;
  const key = callsNeedKey ? ` \\\n  -H "authorization: Bearer $PORTBOOK_KEY"` : "";
  const body = JSON.stringify({ session_id: "console", args: given });
  return `curl -s ${quoted(url)}${key} \\\n  -H 'content-type: application/json' \\\n  -d ${quoted(body)}`;
}

/** Return a call as a command of Portbook. */
export function portbookOf(tool, given) {
  return `portbook call ${quoted(tool)} --input ${quoted(JSON.stringify(given))}`;
}

/** Make the buttons that copy a call; `read` returns its arguments, or null. */
export function copyRow(tool, read) {
  const shown = h("div", { role: "status" });
  const copy = async (commandOf) => {
    const given = read();
    if (given === null) return;
    const command = commandOf(tool.name, given);
    // Shown too: browsers keep the clipboard from pages that were not loaded over HTTPS.
    const isCopied = await navigator.clipboard?.writeText(command).then(
      () => true,
      () => false,
    );
    shown.replaceChildren(
      h("p", { class: "dim" }, isCopied ? "Copied." : "Copy it from here:"),
      block(command, "The command"),
    );
  };
  return h(
    "div",
    {},
    h(
      "div",
      { class: "row" },
      button("Copy as curl", () => copy(curlOf)),
      button("Copy as portbook call", () => copy(portbookOf)),
    ),
    shown,
  );
}
