// A server of the Model Context Protocol with one tool, which reads a line of
// notes.txt: Codex shows such tools in a namespace.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const tool = {
  name: "read_line",
  description: "Reads one line of the notes.",
  inputSchema: { type: "object", properties: { number: { type: "integer" } }, required: ["number"] },
  annotations: { readOnlyHint: true },
};

const answers = {
  initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "notes", version: "1" } }),
  "tools/list": () => ({ tools: [tool] }),
  "tools/call": ({ arguments: { number } }) => ({ content: [{ type: "text", text: readFileSync("notes.txt", "utf8").split("\n")[number - 1] }] }),
};

for await (const line of createInterface({ input: process.stdin })) {
  if (!line.trim()) continue;
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) continue;
  const result = answers[method] ? answers[method](params) : {};
  console.log(JSON.stringify({ jsonrpc: "2.0", id, result }));
}
