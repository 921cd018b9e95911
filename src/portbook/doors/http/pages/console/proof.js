// Proof: whether the log is whole, up to which record, and what signs results.

import { badge, block, button, facts, h } from "./dom.js";
import { callsHref } from "./place.js";
import { ask, now } from "./server.js";
import { clock, counted } from "./times.js";

/** Fill the view. */
export function showProof(room) {
  const place = h("div", { role: "status" });
  const look = async () => {
    place.replaceChildren(h("p", { class: "lead" }, "Reading the whole log"));
    try {
      place.replaceChildren(...proofOf(await ask("operator", "operator/proof")));
    } catch (problem) {
      place.replaceChildren(h("p", { class: "bad" }, problem.message));
    }
  };
  room.append(place, button("Verify again", look));
  look();
  return {};
}

function proofOf(proof) {
  const records = proof.streams.reduce((sum, stream) => sum + stream.records, 0);
  const verdict = proof.whole
    ? h(
        "p",
        { class: "verdict good" },
        h("strong", {}, "The log is whole."),
        ` Every one of ${counted(records, "record")} follows from the one before it. Verified at `,
        clock(new Date(now()).toISOString()),
        ".",
      )
    : h(
        "p",
        { class: "verdict bad" },
        h("strong", {}, "The log is broken."),
        " Below is the first place that is not as it was written.",
      );
  return [
    verdict,
    ...proof.streams.map(streamCard),
    checkpointCard(proof.checkpoints),
    signingCard(proof.signing_key),
    unknownCard(proof.unknown),
  ];
}

function streamCard(stream) {
  const { broken } = stream;
  return h(
    "section",
    { class: "card" },
    h("header", {}, h("h2", {}, stream.stream), badge(stream.whole ? "whole" : "broken")),
    facts([
      ["records", `${counted(stream.records, "record")} in ${counted(stream.files, "file")}`],
      ["up to", stream.head ? null : "nothing recorded yet"],
      ["broken at", broken ? `${broken.file}:${broken.line}, record ${broken.seq}: ${broken.message}` : null],
      ["older files", stream.pruned ? "were removed, as the settings say" : null],
      ["cut off", stream.cut.length ? stream.cut.join(", ") : null],
    ]),
    stream.head
      ? [
          block(`portbook audit verify --head ${stream.head}`, `Command for the head of ${stream.stream}`),
          h(
            "p",
            { class: "dim" },
            "Keep this command elsewhere: it proves later that nothing up to this record was changed or removed.",
          ),
        ]
      : null,
  );
}

function checkpointCard(checkpoints) {
  const { broken, newest } = checkpoints;
  return h(
    "section",
    { class: "card" },
    h("header", {}, h("h2", {}, "checkpoints"), badge(checkpoints.whole ? "whole" : "broken")),
    facts([
      ["newest", newest ? h("code", {}, newest) : "none yet"],
      ["made", checkpoints.at ? clock(checkpoints.at) : null],
      ["signed by", checkpoints.signed_by ? h("code", {}, checkpoints.signed_by) : null],
      ["not covered yet", checkpoints.uncovered ? counted(checkpoints.uncovered, "record") : null],
      ["broken at", broken ? `checkpoint ${broken.checkpoint}: ${broken.message}` : null],
    ]),
    h(
      "p",
      { class: "dim" },
      "A checkpoint shows that records were cut off at the end, or a whole file was removed. Note the newest elsewhere: ",
      h("code", {}, "portbook audit verify --checkpoint NEWEST"),
      " later proves that none was replaced.",
    ),
  );
}

function signingCard(key) {
  const words = key
    ? h("code", {}, key)
    : "No signing key is set: result envelopes are not signed. Set signing_key under [envelope].";
  return h("section", { class: "card" }, h("h2", {}, "Signing key"), h("p", {}, words));
}

function unknownCard(unknown) {
  if (!unknown.length)
    return h(
      "section",
      { class: "card" },
      h("h2", {}, "Calls without an outcome"),
      h("p", {}, "None: every call that began has a record of its end."),
    );
  const items = unknown.map((each) =>
    h(
      "li",
      {},
      h("a", { href: callsHref({}, each.request_id) }, each.tool_id ?? each.request_id),
      ` ${each.timestamp} (${each.file}:${each.line})`,
    ),
  );
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "Calls without an outcome"),
    h("p", {}, "Their process died while they ran. Check what they did before repeating them."),
    h("ul", {}, items),
  );
}
