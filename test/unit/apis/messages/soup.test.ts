/** Requests with anything anywhere: each is answered or refused, and none is a defect of ours; answers at random, whole and streamed. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { check, error } from "../../../support/schemas/messages.ts";
import { random } from "../../generation/random.ts";
import { ScriptedEngine } from "../../generation/scripted-engine.ts";
import { type Gateway, modelEntry, startGateway } from "../../server/gateway.ts";
import { OSLO, play, QWEN, written } from "../../server/tool-chat.ts";
import { answer, ask, CLOCK, post, user, WEATHER } from "./asking.ts";

let gateway: Gateway;
let said = "Yes.";
let size = 1000;
let reason: "stop" | "length" = "stop";
beforeAll(() => {
  const engine = new ScriptedEngine((call) => queueMicrotask(() => play([said], call, { size, reason })));
  gateway = startGateway([], engine, [modelEntry({ parsers: QWEN })]);
});
afterAll(() => gateway.stop());

const FULL = {
  ...ask,
  system: [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral" } }],
  tools: [WEATHER, { ...CLOCK, defer_loading: true }, { type: "bash_20250124", name: "bash" }],
  tool_choice: { type: "auto", disable_parallel_tool_use: false },
  thinking: { type: "adaptive", display: "omitted" },
  output_config: { effort: "high", format: null },
  context_management: { edits: [] },
  stop_sequences: ["END"],
  messages: [
    user([
      { type: "text", text: "a" },
      { type: "document", title: "t", source: { type: "text", data: "d" } },
    ]),
    { role: "system", content: "Now.", clear_at: "never" },
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "hm", signature: "s1.x" },
        { type: "text", text: "b" },
        { type: "tool_use", id: "t1", name: "get_weather", input: { city: "Oslo", list: [1, { a: 2.5 }] } },
        { type: "server_tool_use", id: "s1", name: "web_search", input: {} },
      ],
    },
    user([
      { type: "tool_result", tool_use_id: "t1", content: [{ type: "tool_reference", tool_name: "get_time" }] },
      { type: "search_result", title: "t", source: "s", content: [{ type: "text", text: "c" }] },
    ]),
    {
      role: "system",
      content: [{ type: "tool_addition", tool: { type: "tool_definition", definition: { ...CLOCK, name: "n" } } }],
    },
    user("c"),
  ],
};
const JUNK = [
  null,
  true,
  -1,
  1.5,
  2 ** 40,
  "",
  "x",
  "\ud800",
  [],
  [[]],
  {},
  { type: "text" },
  { type: 1 },
  ["a"],
  { a: { b: [] } },
];

type Holder = Record<string | number, unknown>;
/** Every place of a value: its holder and the key in it. */
function places(value: unknown): [Holder, string][] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => [
    [value as Holder, key] as [Holder, string],
    ...places(inner),
  ]);
}

test("the whole of it is fine", async () => {
  const response = await post(gateway, FULL);
  expect([response.status, response.status === 200 ? "" : await response.text()]).toEqual([200, ""]);
});

test("junk in any place is no defect", async () => {
  const { below, pick } = random(3);
  const statuses = new Set<number>();
  for (let round = 0; round < 1200; round++) {
    const body = structuredClone(FULL) as unknown as Holder;
    for (let change = 0; change <= below(2); change++) {
      const [holder, key] = pick(places(body));
      if (below(5) === 0) delete holder[key];
      else holder[key] = pick(JUNK);
    }
    const path = below(4) === 0 ? "/v1/messages/count_tokens" : "/v1/messages";
    const response = await post(gateway, body, path);
    statuses.add(response.status);
    const told = (await response.json()) as object;
    if (response.status === 200) continue;
    check(error, told);
    if (response.status >= 500) throw new Error(`${JSON.stringify(told)}: ${JSON.stringify(body)}`);
  }
  expect([...statuses].sort()).toEqual([200, 400, 404]);
  expect(gateway.scopes.size).toBe(0);
}, 60_000);

const PIECES = [
  ...[
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "\n",
    "\n\n",
    " ",
    "Text. ",
    "日本 👩‍👩‍👧",
    OSLO,
    OSLO.slice(0, 40),
    OSLO.slice(0, -20),
  ],
  ...[
    written("get_time", { zone: 1.5 }),
    '{"name": "get_weather", "arguments": ',
    '{"city": "x"}',
    "}",
    '"',
    "END",
    "<tool",
  ],
];

test("answers of markers, calls and text are the same whole and streamed", async () => {
  const { below, pick } = random(5);
  for (let round = 0; round < 150; round++) {
    said = Array.from({ length: below(9) }, () => pick(PIECES)).join("");
    size = 1 + below(9);
    reason = below(4) === 0 ? "length" : "stop";
    const body = {
      tools: [WEATHER, CLOCK],
      ...(below(2) === 0 && { thinking: { type: "adaptive", ...(below(2) === 0 && { display: "omitted" }) } }),
      ...(below(3) === 0 && { stop_sequences: ["END"] }),
      ...(below(4) === 0 && { tool_choice: { type: "auto", disable_parallel_tool_use: true } }),
    };
    await answer(gateway, body).catch((cause: unknown) => {
      throw new Error(`${JSON.stringify(said)} ${size} ${reason} ${JSON.stringify(body)}: ${String(cause)}`, { cause });
    });
  }
}, 60_000);
