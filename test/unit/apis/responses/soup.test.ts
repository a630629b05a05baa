/** Requests out of random values under the names that Responses know: read, or refused as the client's fault. */
import { expect, test } from "bun:test";
import { Value } from "@sinclair/typebox/value";
import { askedConversation, checkRequest, textAsk } from "../../../../src/apis/responses/ask.ts";
import { isReference } from "../../../../src/apis/responses/input.ts";
import { requestFields } from "../../../../src/apis/responses/object.ts";
import { type Loose, type ResponsesRequest, responsesRequest } from "../../../../src/apis/responses/schema.ts";
import { inputItems } from "../../../../src/apis/responses/state.ts";
import { GatewayError } from "../../../../src/errors.ts";
import { random } from "../../generation/random.ts";

const TYPES = [
  ...["message", "reasoning", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output"],
  ...["item_reference", "compaction", "mcp_call", "local_shell_call", "local_shell_call_output", "shell_call"],
  ...["apply_patch_call", "computer_call", "computer_call_output", "tool_search_call", "tool_search_output", "program"],
  ...["code_interpreter_call", "file_search_call", "web_search_call", "additional_tools", "configuration_update"],
  ...["function", "custom", "namespace", "mcp", "web_search", "allowed_tools", "input_text", "output_text", "refusal"],
  ...["input_image", "json_schema", "json_object", "text", "grammar", "lark", "regex", "summary_text"],
];
const NAMES = [
  ...["type", "role", "content", "text", "id", "call_id", "name", "namespace", "arguments", "input", "output", "tools"],
  ...[
    "summary",
    "encrypted_content",
    "action",
    "operation",
    "code",
    "outputs",
    "results",
    "queries",
    "refusal",
    "format",
  ],
  ...["syntax", "definition", "grammar", "parameters", "description", "strict", "mode", "schema", "server_label"],
  ...[
    "server_url",
    "connector_id",
    "reasoning",
    "effort",
    "status",
    "allowed_tools",
    "function",
    "__proto__",
    "toString",
  ],
];
const TEXTS = [
  ...TYPES,
  ...NAMES,
  "user",
  "assistant",
  "system",
  "developer",
  "auto",
  "required",
  "none",
  "",
  "a b",
  "\ud800",
  "😀",
];

/** What makes a whole of most items and tools. */
const USUAL = { role: "user", content: "a", call_id: "c", name: "f", arguments: "{}", output: "x", tools: [] };

type Random = ReturnType<typeof random>;

function value({ below, pick }: Random, depth: number): unknown {
  const kind = below(depth <= 0 ? 5 : 9);
  if (kind === 0) return null;
  if (kind === 1) return pick([0, 1, -1, 1.5, 1e300]);
  if (kind === 2) return below(2) === 0;
  if (kind < 5) return pick(TEXTS);
  const next = () => value({ below, pick } as Random, depth - 1);
  if (kind === 5) return Array.from({ length: below(4) }, next);
  return object({ below, pick } as Random, depth);
}

function object(from: Random, depth: number): Loose {
  const { below, pick } = from;
  const entries = Array.from({ length: below(4) }, () => [pick(NAMES), value(from, depth - 1)] as const);
  const usual = below(3) > 0 ? Object.entries(USUAL) : [];
  return Object.fromEntries([...usual, ...(below(4) > 0 ? [["type", pick(TYPES)] as const] : []), ...entries]);
}

function request(from: Random): Record<string, unknown> {
  const { below } = from;
  const list = (depth: number) => Array.from({ length: below(5) }, () => object(from, depth));
  const maybe = (make: () => unknown) => (below(3) === 0 ? undefined : make());
  return {
    model: "m",
    input: below(6) === 0 ? value(from, 2) : list(3),
    tools: maybe(() => list(3)),
    tool_choice: maybe(() => value(from, 3)),
    text: maybe(() => ({ format: value(from, 2) })),
    reasoning: maybe(() => value(from, 1)),
    instructions: maybe(() => value(from, 0)),
  };
}

test("20 000 of them", () => {
  let read = 0;
  for (let seed = 1; seed <= 20_000; seed++) {
    const body = JSON.parse(JSON.stringify(request(random(seed)))) as ResponsesRequest;
    if (!Value.Check(responsesRequest, body)) continue; // refused by its schema
    try {
      checkRequest(body);
      const input = body.input ?? [];
      const items = typeof input === "string" ? input : input.filter((item: Loose) => !isReference(item));
      const raw = seed % 2 === 0 ? JSON.stringify(body) : undefined;
      const open = (blob: string) =>
        blob.startsWith("t") ? '[{"type":"message","role":"user","content":"a"},{}]' : undefined;
      const asked = askedConversation(body, { context: [], items, raw, open });
      const names = asked.tools.definitions.map(({ name }) => name);
      for (const name of names) expect(name).toMatch(/^[a-zA-Z0-9_.-]{1,128}$/);
      for (const { toolCalls = [] } of asked.conversation.messages)
        for (const call of toolCalls) expect([typeof call.name, typeof call.arguments]).toEqual(["string", "string"]);
      textAsk(body, asked, true);
      JSON.stringify(requestFields(body, { sampling: {} }));
      for (const { id } of inputItems(input)) expect(String(id)).not.toContain("function");
      read++;
    } catch (error) {
      if (!(error instanceof GatewayError) || error.status >= 500)
        throw new Error(`seed ${seed}: ${JSON.stringify(body)}`, { cause: error });
    }
  }
  expect(read).toBeGreaterThan(500);
});
