/** Requests as Codex CLI makes them (0.171): its whole history every time, nothing kept on the server. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { ResponseItem } from "../../../support/schemas/responses.ts";
import { decodeAll } from "../../generation/demo-tokenizer.ts";
import type { Gateway } from "../../server/gateway.ts";
import { play, written } from "../../server/tool-chat.ts";
import { responsesGateway, streamed } from "./http.ts";

const fn = (name: string, properties: object = {}) => ({
  type: "function",
  name,
  description: `Does ${name}`,
  strict: false,
  parameters: { type: "object", properties, required: Object.keys(properties), additionalProperties: false },
});

const said = (role: string, id: string, text: string) => ({
  type: "message",
  role,
  id,
  content: [{ type: "input_text", text }],
});

const request = (input: readonly unknown[]) => ({
  input,
  instructions: "You are a coding agent.",
  tools: [
    fn("exec_command", { cmd: { type: "string" } }),
    fn("update_goal"),
    {
      type: "custom",
      name: "apply_patch",
      description: "Edits files",
      format: { type: "grammar", syntax: "lark", definition: 'start: "*** Begin Patch" /.+/' },
    },
    { type: "namespace", name: "multi_agent_v1", description: "Agents", tools: [fn("spawn"), fn("wait")] },
    { type: "web_search", external_web_access: false },
  ],
  tool_choice: "auto",
  parallel_tool_calls: true,
  reasoning: { effort: null, summary: "auto" },
  store: false,
  include: ["reasoning.encrypted_content"],
  prompt_cache_key: "019a-session",
  client_metadata: { "x-codex-installation-id": "1" },
});

const OPENING = [
  said("developer", "msg_1", "<permissions>read-only</permissions>"),
  said("developer", "msg_2", "<skills/>"),
  said("user", "msg_3", "<environment_context/>"),
  said("user", "msg_4", "List the files."),
];
const THOUGHT = "<think>\nI shall list them.\n</think>\n\n";
const PATCH = "*** Begin Patch\n*** End Patch";
const ANSWERS = [
  `${THOUGHT}${written("exec_command", { cmd: "ls" })}\n${written("multi_agent_v1__spawn", {})}`,
  written("apply_patch", { input: PATCH }),
  "Done.",
];

let gateway: Gateway;
let rounds = 0;
beforeAll(() => {
  gateway = responsesGateway((call) => play([ANSWERS[rounds++]!], call));
});
afterAll(() => gateway.stop());

test("three rounds: each prompt goes on from the one before, with thoughts, calls and results in their places", async () => {
  const history: unknown[] = [...OPENING];
  const outputs: ResponseItem[] = [];
  for (let round = 0; round < 3; round++) {
    const { body } = await streamed(gateway, request(history));
    expect(body.status).toBe("completed");
    expect(body["prompt_cache_key"]).toBe("019a-session");
    outputs.push(...body.output);
    const results = body.output.flatMap(({ type, call_id, name }) => {
      if (type === "function_call") return [{ type: "function_call_output", call_id, output: `ran ${String(name)}` }];
      return type === "custom_tool_call" ? [{ type: "custom_tool_call_output", call_id, output: "patched" }] : [];
    });
    history.push(...body.output, ...results);
  }
  expect(outputs.map(({ type, name, namespace }) => [type, name, namespace])).toEqual([
    ["reasoning", undefined, undefined],
    ["function_call", "exec_command", undefined],
    ["function_call", "spawn", "multi_agent_v1"],
    ["custom_tool_call", "apply_patch", undefined],
    ["message", undefined, undefined],
  ]);
  expect(outputs[3]!["input"]).toBe(PATCH);
  const prompts = gateway.engine.calls.map(({ request: { tokenIds } }) => decodeAll([...tokenIds], false));
  for (const name of ["exec_command", "apply_patch", "multi_agent_v1__wait"])
    expect(prompts[0]).toContain(`"name": "${name}"`);
  expect(prompts[0]).toContain("*** Begin Patch"); // models see the grammar
  expect(prompts[0]).not.toContain("web_search");
  for (const round of [1, 2]) expect(prompts[round]).toStartWith(prompts[round - 1]!);
  const [system = "", ...turns] = prompts[2]!.split("<|im_start|>").slice(1);
  expect(system).toContain("You are a coding agent.");
  expect(turns.join("|")).toBe(
    [
      "system\n<permissions>read-only</permissions><|im_end|>\n",
      "system\n<skills/><|im_end|>\n",
      "user\n<environment_context/><|im_end|>\n",
      "user\nList the files.<|im_end|>\n",
      `assistant\n${THOUGHT}${written("exec_command", '{"cmd": "ls"}')}\n${written("multi_agent_v1__spawn", {})}<|im_end|>\n`,
      "user\n<tool_response>\nran exec_command\n</tool_response>\n<tool_response>\nran spawn\n</tool_response><|im_end|>\n",
      `assistant\n${written("apply_patch", `{"input": ${JSON.stringify(PATCH)}}`)}<|im_end|>\n`,
      "user\n<tool_response>\npatched\n</tool_response><|im_end|>\n",
      "assistant\n",
    ].join("|"),
  );
});
