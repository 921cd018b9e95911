// A client of /mcp: what tools report and ask while they run comes in the stream of their call.

import { eventsOf } from "./event_reader.js";
import { forget, keys, turnOf } from "./keys.js";
import { Refused, send } from "./server.js";

const REVISION = "2025-11-25";
const MOST_PAGES = 100;

let session = null;
let connecting = null;
let ids = 0;

keys.addEventListener("changed", ({ detail }) => {
  if (detail.role === "caller") session = connecting = null;
});

/** An error of MCP, with what Portbook says about it. */
export class McpError extends Error {
  constructor(error) {
    super([error.message, error.data?.hint].filter(Boolean).join(" "));
    this.data = error.data ?? {};
  }
}

async function post(message, signal) {
  const headers = { accept: "application/json, text/event-stream", "mcp-protocol-version": REVISION };
  if (session) headers["mcp-session-id"] = session;
  const turn = turnOf("caller");
  const response = await send("caller", "mcp", { body: message, headers, signal });
  if (response.status === 401) {
    const body = await response.json().catch(() => null);
    forget("caller", body?.error?.message ?? "This key is not known.", turn);
    throw new Refused(401, { message: "A key is needed." });
  }
  return response;
}

async function connect() {
  const params = {
    protocolVersion: REVISION,
    capabilities: { elicitation: { form: {} } },
    clientInfo: { name: "portbook-console", version: "1" },
  };
  const response = await post({ jsonrpc: "2.0", id: (ids += 1), method: "initialize", params });
  const body = await response.json();
  if (body.error) throw new McpError(body.error);
  session = response.headers.get("mcp-session-id");
  await post({ jsonrpc: "2.0", method: "notifications/initialized" });
}

// Requests that begin together share one session.
async function connected() {
  if (session) return;
  connecting ??= connect().finally(() => {
    connecting = null;
  });
  await connecting;
}

/**
 * Send one request. Returns `{result, requestId}`; raises `McpError`.
 *
 * `onNotice(method, params)` is told what the tool reports, `onQuestion(params)` answers its questions.
 */
export async function request(method, params, { onNotice = () => {}, onQuestion = null, signal } = {}) {
  await connected();
  const id = (ids += 1);
  const message = { jsonrpc: "2.0", id, method, params };
  signal?.addEventListener("abort", () => cancel(id));
  let response = await post(message, signal);
  if (response.status === 404) {
    // The session is over, because the server was started again or nobody used it.
    session = null;
    await connected();
    response = await post(message, signal);
  }
  const requestId = response.headers.get("x-request-id");
  const answer = await answerIn(response, id, onNotice, onQuestion);
  if (answer.error) throw Object.assign(new McpError(answer.error), { requestId });
  return { result: answer.result, requestId };
}

async function answerIn(response, id, onNotice, onQuestion) {
  if (!response.headers.get("content-type")?.startsWith("text/event-stream")) {
    return (await response.json().catch(() => null)) ?? { error: { message: "The answer cannot be read." } };
  }
  for await (const { data } of eventsOf(response)) {
    if (data.id === id && !data.method) return data;
    if (data.method && data.id !== undefined) answerQuestion(data, onQuestion);
    else if (data.method) onNotice(data.method, data.params ?? {});
  }
  return { error: { message: "The stream ended without an answer." } };
}

async function answerQuestion(question, onQuestion) {
  const result =
    question.method === "elicitation/create" && onQuestion ? await onQuestion(question.params) : null;
  const reply = result ? { result } : { error: { code: -32601, message: "This client cannot answer that." } };
  await post({ jsonrpc: "2.0", id: question.id, ...reply });
}

function cancel(requestId) {
  post({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId } }).catch(() => {});
}

/** Return everything that a list method lists under `member`; nothing where the server has none. */
export async function listed(method, member) {
  const found = [];
  let cursor;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    let answer;
    try {
      answer = await request(method, cursor ? { cursor } : {});
    } catch (problem) {
      if (problem instanceof McpError) return found;
      throw problem;
    }
    found.push(...answer.result[member]);
    cursor = answer.result.nextCursor;
    if (!cursor) break;
  }
  return found;
}
