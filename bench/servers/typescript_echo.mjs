// The echo tool on the official TypeScript SDK; copied beside its packages, where node finds them.
import { McpServer } from "@modelcontextprotocol/server";
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import * as z from "zod";
const server = new McpServer({ name: "echo", version: "1" });
server.registerTool(
  "echo",
  { description: "Say it again.", inputSchema: z.object({ text: z.string() }), outputSchema: z.object({ text: z.string() }) },
  async ({ text }) => ({ content: [{ type: "text", text: JSON.stringify({ text }) }], structuredContent: { text } }),
);
await server.connect(new StdioServerTransport());
