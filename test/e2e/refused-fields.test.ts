/** What an engine cannot do is refused by each API in its own shape, and by its own name of the field; nothing is sent. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { BUILD_MS } from "./support/binary.ts";
import { startEngine, startGateway, type TestEngine, type TestGateway, user } from "./support/processes.ts";

let engine: TestEngine;
let gateway: TestGateway;
beforeAll(async () => {
  engine = await startEngine("[]", ["--dialect", "mlx"]);
  gateway = await startGateway([engine]);
}, BUILD_MS);
afterAll(async () => {
  await gateway?.stop();
  await engine?.stop();
});

const schema = { type: "object", properties: { a: { type: "integer" } }, required: ["a"], additionalProperties: false };
const parameters = { type: "object", properties: { city: { type: "string" } } };
const messages = user("hi");

/** `param`: the member of OpenAI's errors; Anthropic's have the text alone. */
const cases: readonly (readonly [string, string, object, string])[] = [
  [
    "/v1/chat/completions",
    "response_format",
    { messages, response_format: { type: "json_schema", json_schema: { name: "x", schema } } },
    "response_format",
  ],
  [
    "/v1/chat/completions",
    "response_format",
    { messages, response_format: { type: "json_object" } },
    "response_format",
  ],
  ["/v1/chat/completions", "regex", { messages, regex: "a+" }, "regex"],
  ["/v1/chat/completions", "n", { messages, n: 2 }, "n"],
  [
    "/v1/chat/completions",
    "tool_choice",
    { messages, tools: [{ type: "function", function: { name: "f", parameters } }], tool_choice: "required" },
    "tool_choice",
  ],
  [
    "/v1/responses",
    "text.format",
    { input: "hi", text: { format: { type: "json_schema", name: "x", schema } } },
    "text.format",
  ],
  ["/v1/responses", "text.format", { input: "hi", text: { format: { type: "json_object" } } }, "text.format"],
  [
    "/v1/responses",
    "tool_choice",
    { input: "hi", tools: [{ type: "function", name: "f", parameters, strict: false }], tool_choice: "required" },
    "tool_choice",
  ],
  [
    "/v1/messages",
    "",
    { messages, max_tokens: 9, output_config: { format: { type: "json_schema", schema } } },
    "output_config.format",
  ],
  [
    "/v1/messages",
    "",
    { messages, max_tokens: 9, tools: [{ name: "f", input_schema: parameters }], tool_choice: { type: "any" } },
    "tool_choice",
  ],
  ["/v1/completions", "min_tokens", { prompt: "hi", min_tokens: 2 }, "min_tokens"],
];

test.each(cases)("%s: %s", async (path, param, body, named) => {
  for (const stream of [false, true]) {
    const response = await fetch(gateway.url + path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: gateway.model, stream, ...body }),
    });
    expect(response.status).toBe(400);
    const { error } = (await response.json()) as { error: Record<string, unknown> };
    expect(error["type"]).toBe("invalid_request_error");
    expect(error["message"]).toContain(named);
    expect(error["param"]).toBe(param === "" ? undefined : param);
  }
  expect((await engine.stats()).received).toBe(0);
});
