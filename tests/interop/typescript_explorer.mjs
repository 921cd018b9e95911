// Lists and uses all that a server offers, with the official TypeScript client alone. Started with the folder
// that holds its node_modules.
//
// Reads the same orders from standard input and writes the same answers as python_explorer.py.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [, , folder] = process.argv;
const require = createRequire(join(folder, "package.json"));
const { Client, StreamableHTTPClientTransport } = require("@modelcontextprotocol/client");
const { StdioClientTransport } = require("@modelcontextprotocol/client/stdio");

const options = { timeout: 100_000 }; // a busy machine starts three servers for the first answer
const NEGOTIATIONS = {
  auto: { versionNegotiation: { mode: "auto" } },
  legacy: { supportedProtocolVersions: ["2025-11-25"] },
};
const CAPABILITIES = { elicitation: { form: {}, url: {} }, sampling: {}, roots: { listChanged: true } };

async function outcome(request) {
  try {
    return { result: await request };
  } catch (error) {
    if (typeof error.code !== "number") throw error; // an error of the client itself
    return { error: { code: error.code, message: error.message } };
  }
}

// A client that answers whatever it is asked, and notes it.
function answering(mode, state) {
  const client = new Client(
    { name: "portbook-explorer", version: "0" },
    { ...NEGOTIATIONS[mode], capabilities: CAPABILITIES },
  );
  client.setRequestHandler("elicitation/create", async ({ params }) => {
    state.asked.push("elicitation/create");
    return params.mode === "url" ? { action: "accept" } : { action: "accept", content: state.content };
  });
  client.setRequestHandler("sampling/createMessage", async () => {
    state.asked.push("sampling/createMessage");
    return { role: "assistant", content: { type: "text", text: "Paris" }, model: "a-model" };
  });
  client.setRequestHandler("roots/list", async () => {
    state.asked.push("roots/list");
    return { roots: [{ uri: "file:///work/first", name: "first" }] };
  });
  return client;
}

async function call(client, state, { tool, arguments: args = {}, content = {} }) {
  state.asked = [];
  state.content = content;
  const progress = [];
  const onprogress = (step) => progress.push([step.progress, step.total]);
  const ended = await outcome(client.callTool({ name: tool, arguments: args }, { ...options, onprogress }));
  return { ...ended, asked: state.asked, progress };
}

async function visit(order, state) {
  const client = answering(order.mode, state);
  const [command, ...args] = order.command ?? [];
  const transport = order.url
    ? new StreamableHTTPClientTransport(new URL(order.url))
    : new StdioClientTransport({ command, args, cwd: order.cwd, stderr: "inherit" });
  const seen = { calls: {}, reads: {}, gets: {}, completions: {} };
  const remember = transport.setProtocolVersion?.bind(transport);
  transport.setProtocolVersion = (version) => {
    seen.version = version;
    remember?.(version);
  };
  try {
    await client.connect(transport, options);
    seen.tools = (await client.listTools(undefined, options)).tools;
    for (const each of order.call) {
      state.at = each.name;
      seen.calls[each.name] = await call(client, state, each);
    }
    state.at = "after the calls";
    const can = client.getServerCapabilities();
    if (can.resources) {
      seen.resources = (await client.listResources(undefined, options)).resources;
      seen.templates = (await client.listResourceTemplates(undefined, options)).resourceTemplates;
      for (const uri of order.read) seen.reads[uri] = await outcome(client.readResource({ uri }, options));
    }
    if (can.prompts) {
      seen.prompts = (await client.listPrompts(undefined, options)).prompts;
      for (const each of order.get) seen.gets[each.name] = await outcome(client.getPrompt(each, options));
    }
    for (const { name, ref, argument, context } of order.complete) {
      const given = context ? { context: { arguments: context } } : {};
      seen.completions[name] = await outcome(client.complete({ ref, argument, ...given }, options));
    }
  } finally {
    await client.close();
  }
  return seen;
}

const seen = {};
for (const order of JSON.parse(readFileSync(0, "utf8"))) {
  const state = { asked: [], content: {}, at: "before the calls" };
  try {
    seen[order.name] = await visit(order, state);
  } catch (error) {
    seen[order.name] = { failed: [`${order.name}, ${state.at}: ${error.name}: ${error.message}`] };
  }
}
process.stdout.write(JSON.stringify(seen), () => process.exit(0)); // a stream of a server may still be open
