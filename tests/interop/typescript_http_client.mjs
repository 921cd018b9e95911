// A session over HTTP with the official TypeScript client. Started with the folder that holds its node_modules.
//
// Reads the same orders from standard input and writes the same answers as python_http_client.py.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const [, , folder] = process.argv;
const require = createRequire(join(folder, "package.json"));
const { Client, StreamableHTTPClientTransport } = require("@modelcontextprotocol/client");

const options = { timeout: 40_000 };
const text = (result) => result.content[0].text;

async function talk(url, mode) {
  const negotiation =
    mode === "auto" ? { versionNegotiation: { mode: "auto" } } : { supportedProtocolVersions: [mode] };
  const client = new Client(
    { name: "portbook-interop", version: "0" },
    { ...negotiation, capabilities: { elicitation: {} } },
  );
  client.setRequestHandler("elicitation/create", async () => ({ action: "accept", content: { name: "Alice" } }));
  const transport = new StreamableHTTPClientTransport(new URL(url));
  const seen = {};
  const remember = transport.setProtocolVersion?.bind(transport);
  transport.setProtocolVersion = (version) => {
    seen.version = version;
    remember?.(version);
  };
  try {
    await client.connect(transport, options);
    seen.tools = (await client.listTools(undefined, options)).tools.map((tool) => tool.name);
    const call = (name, args, more = {}) =>
      client.callTool({ name, arguments: args }, { ...options, ...more });
    seen.call = text(await call("greet", { name: "World" }));
    seen.resource = (await client.readResource({ uri: "test://template/7/data" }, options)).contents[0].text;
    const prompt = { name: "test_prompt_with_arguments", arguments: { arg1: "a", arg2: "b" } };
    seen.prompt = (await client.getPrompt(prompt, options)).messages[0].content.text;
    seen.elicitation = text(await call("test_input_required_result_elicitation", {}));
    seen.progress = [];
    await call("test_tool_with_progress", {}, {
      onprogress: ({ progress, total }) => seen.progress.push([progress, total]),
    });
    const stop = new AbortController();
    const waiting = call("slow_compute", { seconds: 60, label: "given up" }, { signal: stop.signal }).catch(() => {});
    await sleep(300);
    stop.abort("given up");
    await waiting;
    seen.last = text(await call("greet", { name: "again" }));
    await transport.terminateSession?.();
  } finally {
    await client.close();
  }
  return seen;
}

const orders = JSON.parse(readFileSync(0, "utf8"));
const seen = {};
for (const mode of orders.modes) {
  try {
    seen[mode] = await talk(orders.url, mode);
  } catch (error) {
    seen[mode] = { failed: [`${error.name}: ${error.message}`] };
  }
}
console.log(JSON.stringify(seen));
