// A session with the official TypeScript client. Started with the folder that holds its node_modules and
// the line of the client, `2` (@modelcontextprotocol/client) or `1` (@modelcontextprotocol/sdk).
//
// Reads the same orders from standard input and writes the same answers as python_client.py.
import { existsSync, readFileSync, unlinkSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const MILLISECONDS = 30_000; // for one answer, on a busy machine
const TOGETHER = 20; // calls in flight at once
const WITHOUT_HANDSHAKE = "2026-07-28";

const [, , folder, line] = process.argv;
const require = createRequire(join(folder, "package.json"));
const [main, stdio] =
  line === "1"
    ? ["@modelcontextprotocol/sdk/client/index.js", "@modelcontextprotocol/sdk/client/stdio.js"]
    : ["@modelcontextprotocol/client", "@modelcontextprotocol/client/stdio"];
const { Client } = require(main);
const { StdioClientTransport } = require(stdio);

const options = { timeout: MILLISECONDS };

// The first line of the client takes the schema of the result before the options.
function call(client, name, args, more = {}) {
  const params = { name, arguments: args };
  const given = { ...options, ...more };
  return line === "1" ? client.callTool(params, undefined, given) : client.callTool(params, given);
}

async function outcome(request) {
  try {
    return { result: await request };
  } catch (error) {
    // An error of the wire has a number; an error of the client itself has a name or nothing.
    if (typeof error.code !== "number") throw error;
    return { error: { code: error.code, message: error.message } };
  }
}

// Cancel a call while its tool runs; the session must go on, and the late result must not arrive.
async function giveUp(client, flag) {
  const stop = new AbortController();
  const waiting = call(client, "wait_for", { path: flag }, { signal: stop.signal }).catch(() => {});
  for (const until = Date.now() + MILLISECONDS; !existsSync(flag); await sleep(5)) {
    if (Date.now() > until) throw new Error("the tool did not start");
  }
  stop.abort("given up");
  await waiting;
  const meanwhile = await outcome(call(client, "echo", { text: "meanwhile" }));
  unlinkSync(flag);
  return meanwhile;
}

// Make a call that reports progress and ends only after the last report was heard. (This client loses reports
// that arrive in one read with the result: it handles results at once, notifications a little later.)
async function follow(client, flag) {
  const steps = [];
  const onprogress = ({ progress, total, message }) => {
    steps.push([progress, total, message ?? null]);
    if (progress === total) unlinkSync(flag);
  };
  return { ...(await outcome(call(client, "three_steps", { path: flag }, { onprogress }))), steps };
}

async function talk(orders, revision) {
  const [command, ...args] = orders.command;
  const seen = { heard: [] };
  const negotiation =
    revision === WITHOUT_HANDSHAKE
      ? { versionNegotiation: { mode: "auto" } }
      : { supportedProtocolVersions: [revision] };
  const client = new Client({ name: "portbook-interop", version: "0" }, line === "1" ? {} : negotiation);
  client.onerror = (error) => seen.heard.push(`${error.name}: ${error.message}`);
  const transport = new StdioClientTransport({ command, args, cwd: orders.cwd, stderr: "inherit" });
  // Only the transport is told the version in the first line of the client.
  const remember = transport.setProtocolVersion?.bind(transport);
  transport.setProtocolVersion = (version) => {
    seen.version = version;
    remember?.(version);
  };
  try {
    await client.connect(transport, options);
    seen.server = client.getServerVersion();
    seen.capabilities = client.getServerCapabilities();
    seen.tools = (await client.listTools(undefined, options)).tools;
    seen.calls = {};
    for (const [name, [tool, given]] of Object.entries(orders.calls)) {
      seen.calls[name] = await outcome(call(client, tool, given));
    }
    if (revision !== WITHOUT_HANDSHAKE) seen.ping = await outcome(client.ping(options)); // later ones have none
    if (orders.flag) {
      seen.progress = await follow(client, orders.flag);
      const tool = (number) => (number % 2 ? "echo_in_thread" : "echo_later");
      const numbers = [...Array(TOGETHER).keys()];
      const one = (number) => outcome(call(client, tool(number), { text: `call ${number}` }));
      seen.together = await Promise.all(numbers.map(one));
      seen.meanwhile = await giveUp(client, orders.flag);
    }
    seen.last = await outcome(call(client, "echo", { text: "last" }));
  } finally {
    await client.close();
  }
  return seen;
}

const orders = JSON.parse(readFileSync(0, "utf8"));
const seen = {};
for (const revision of orders.revisions) {
  try {
    seen[revision] = await talk(orders, revision);
  } catch (error) {
    seen[revision] = { failed: [`${error.name}: ${error.message}`] };
  }
}
console.log(JSON.stringify(seen));
