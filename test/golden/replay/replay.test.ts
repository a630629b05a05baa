/**
 * Earlier turns with reasoning, calls and results go back into a model's template in the form that it was trained on, whichever API they
 * came through: the prompts that reach the engine are those of transformers (make_replay.py).
 */
import { afterAll, beforeAll, describe, expect, test, setSystemTime } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fixtures } from "../../../scripts/fixtures.ts";
import { findChatTemplate, type TemplateSource } from "../../../src/template/model-template.ts";
import { decodeAll, encode, IM_END } from "../../unit/generation/demo-tokenizer.ts";
import { ScriptedEngine } from "../../unit/generation/scripted-engine.ts";
import { type Gateway, MODEL, modelEntry, startGateway } from "../../unit/server/gateway.ts";

interface Call {
  readonly id: string;
  readonly function: { readonly name: string; readonly arguments: string };
}
interface Sent {
  readonly role: "user" | "assistant" | "tool";
  readonly content: string | null;
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly Call[];
  readonly tool_call_id?: string;
}
interface Tool {
  readonly function: { readonly name: string; readonly description: string; readonly parameters: object };
}
interface Golden {
  readonly made_with: { readonly specials: Record<string, string> };
  readonly tools: readonly Tool[];
  readonly cases: Readonly<Record<string, readonly Sent[]>>;
  /**
   * `thinking`: where the client says that the model is to think, and that changes it. `one_each`: where it fails on several calls of a message, the
   * same as calls one after the other.
   */
  readonly rows: readonly { template: string; case: string; text?: string; thinking?: string; error?: string; one_each?: string }[];
}
const read = (path: string): string => readFileSync(join(import.meta.dir, path), "utf8");
const golden = JSON.parse(read("replay.json")) as Golden;
const configs = join(await fixtures(), "tokenizer-configs");
// templates print the date: that on which the prompts were made
beforeAll(() => setSystemTime(new Date(2026, 10, 30, 12)));
afterAll(() => setSystemTime());

function templateOf(name: string): TemplateSource {
  const own = [`../tools/${name}.jinja`, `../template/chat_templates/${name}.jinja`].find((path) =>
    existsSync(join(import.meta.dir, path)),
  );
  if (own !== undefined) return { source: read(own), specials: golden.made_with.specials };
  const config = readFileSync(join(configs, `${name}.json`));
  return findChatTemplate(new Map([["tokenizer_config.json", new Uint8Array(config)]]))!;
}

/** A body as an API's client sends it, of the messages of Chat Completions. */
type Body = (messages: readonly Sent[], gateway: Gateway) => Record<string, unknown>;
const TENANT = "default";
const functions = golden.tools.map((tool) => tool.function);

const chat: Body = (messages) => ({ messages, tools: golden.tools });

const responses: Body = (messages, { sealer }) => ({
  store: false,
  tools: functions.map((each) => ({ type: "function", strict: false, ...each })),
  input: messages.flatMap<object>(({ role, content, reasoning_content: thoughts, tool_calls: calls, tool_call_id: id }, at) => {
    if (role === "tool") return [{ type: "function_call_output", call_id: id, output: content }];
    if (role === "user") return [{ type: "message", role, content: [{ type: "input_text", text: content }] }];
    const sealed = { encrypted_content: sealer.seal(TENANT, thoughts ?? "") };
    return [
      ...(thoughts === undefined ? [] : [{ type: "reasoning", id: `rs_${at}`, summary: [], ...sealed }]),
      ...(content === null
        ? []
        : [{ type: "message", id: `msg_${at}`, role, content: [{ type: "output_text", text: content, annotations: [] }] }]),
      ...(calls ?? []).map((call) => ({ type: "function_call", call_id: call.id, ...call.function })),
    ];
  }),
});

const messagesApi: Body = (messages, { sealer }) => ({
  max_tokens: 2000,
  thinking: { type: "enabled", budget_tokens: 1024 },
  tools: functions.map(({ parameters, ...each }) => ({ ...each, input_schema: parameters })),
  messages: messages.map(({ role, content, reasoning_content: thoughts, tool_calls: calls, tool_call_id: id }) => {
    if (role === "tool") return { role: "user", content: [{ type: "tool_result", tool_use_id: id, content }] };
    if (role === "user") return { role, content };
    return {
      role,
      content: [
        ...(thoughts === undefined
          ? []
          : [{ type: "thinking", thinking: thoughts, signature: sealer.sign(TENANT, thoughts) }]),
        ...(content === null ? [] : [{ type: "text", text: content }]),
        ...(calls ?? []).map((call) => ({
          type: "tool_use",
          id: call.id,
          name: call.function.name,
          input: JSON.parse(call.function.arguments) as object,
        })),
      ],
    };
  }),
});

const interactions: Body = (messages, { sealer }) => ({
  store: false,
  tools: functions.map((each) => ({ type: "function", ...each })),
  input: messages.flatMap<object>(({ role, content, reasoning_content: thoughts, tool_calls: calls, tool_call_id: id }) => {
    if (role === "tool") return [{ type: "function_result", call_id: id, result: content }];
    if (role === "user") return [{ type: "user_input", content: [{ type: "text", text: content }] }];
    const signature = sealer.sign(TENANT, thoughts ?? "");
    return [
      ...(thoughts === undefined
        ? []
        : [{ type: "thought", signature, summary: [{ type: "text", text: thoughts }] }]),
      ...(content === null ? [] : [{ type: "model_output", content: [{ type: "text", text: content }] }]),
      ...(calls ?? []).map((call) => ({
        type: "function_call",
        id: call.id,
        name: call.function.name,
        arguments: JSON.parse(call.function.arguments) as object,
      })),
    ];
  }),
});

const APIS: readonly (readonly [name: string, path: string, body: Body])[] = [
  ["Chat Completions", "/v1/chat/completions", chat],
  ["Responses", "/v1/responses", responses],
  ["Messages", "/v1/messages", messagesApi],
  ["Interactions", "/v1beta/interactions", interactions],
];

/** The prompt that a request's engine gets, or the message of its failure. */
async function promptOf(gateway: Gateway, path: string, body: object): Promise<string | { readonly error: string }> {
  gateway.engine.calls.length = 0;
  const response = await fetch(gateway.url + path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: MODEL, ...body }),
  });
  const text = await response.text();
  if (text.startsWith("the app")) throw new Error(text);
  const answer = JSON.parse(text) as { error?: { message: string } };
  if (!response.ok) return { error: answer.error?.message ?? "" };
  return decodeAll(Array.from(gateway.engine.calls[0]?.request.tokenIds ?? []), false);
}

/** Answers every request with a word. */
const briefEngine = () =>
  new ScriptedEngine((call) => {
    call.chunk([...encode("Yes"), IM_END]).finish({ completionTokens: 2 }).end();
  });

async function inGateway(template: TemplateSource, work: (gateway: Gateway) => Promise<void>): Promise<void> {
  const gateway = startGateway([], briefEngine(), [modelEntry({ template })]);
  try {
    await work(gateway);
  } finally {
    await gateway.stop();
  }
}

const templates = [...new Set(golden.rows.map(({ template }) => template))];

test("there are prompts of eleven templates; two refuse a case", () => {
  expect([templates.length, golden.rows.length]).toEqual([11, 99]);
  expect(golden.rows.filter(({ error }) => error !== undefined).map((row) => `${row.template} ${row.case}`)).toEqual([
    "tools_in_user parallel",
    "channels call with text",
  ]);
});

describe.each(templates)("%s", (template) => {
  test.each(APIS)("through %s", async (_, path, body) => {
    await inGateway(templateOf(template), async (gateway) => {
      for (const row of golden.rows) {
        if (row.template !== template) continue;
        const text = row.one_each ?? (body === messagesApi ? (row.thinking ?? row.text) : row.text);
        const wanted = text ?? { error: row.error };
        const found = await promptOf(gateway, path, body(golden.cases[row.case]!, gateway));
        expect({ case: row.case, prompt: found }).toEqual({ case: row.case, prompt: wanted as string });
      }
    });
  });
});

// Whose prompts are no template's: their goldens are in ../encoders, by the same messages.
describe.each(["harmony", "deepseek_v32", "deepseek_v4", "kimi_k3"] as const)("%s", (encoder) => {
  test("all APIs give the prompt of Chat Completions", async () => {
    await inGateway({ source: "", specials: {}, encoder }, async (gateway) => {
      for (const [name, messages] of Object.entries(golden.cases)) {
        const thinks = { chat_template_kwargs: { thinking: true } };
        const wanted = await promptOf(gateway, "/v1/chat/completions", { ...chat(messages, gateway), ...thinks });
        for (const [api, path, body] of APIS) {
          const found = await promptOf(gateway, path, { ...body(messages, gateway), ...thinks });
          expect({ api, case: name, prompt: found }).toEqual({ api, case: name, prompt: wanted });
        }
      }
    });
  });
});
