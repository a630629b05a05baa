import { describe, expect, test } from "bun:test";
import { EngineError } from "../../../../src/engines/engine.ts";
import { encode } from "../../generation/demo-tokenizer.ts";
import { ScriptedEngine } from "../../generation/scripted-engine.ts";
import { modelEntry, startGateway } from "../../server/gateway.ts";
import { answered, gatewaysOfTests, post, responsesGateway, streamed, whole } from "./http.ts";

const { answering, stopped } = gatewaysOfTests();

describe("refused requests", () => {
  test.each<[string, object | string, string | null]>([
    ["no model", '{"input": "a"}', "model"],
    ["no input", { input: null }, "input"],
    ["an empty input", { input: [] }, "input"],
    ["an input that is a number", { input: 1 }, "input"],
    [
      "a conversation and a previous response",
      { conversation: "conv_1", previous_response_id: "resp_1" },
      "previous_response_id",
    ],
    ["background without store", { background: true, store: false }, "background"],
    ["a stored prompt", { prompt: { id: "pmpt_1" } }, "prompt"],
    ["a format that is none", { text: { format: { type: "xml" } } }, "text.format.type"],
    ["a schema without a name", { text: { format: { type: "json_schema", schema: {} } } }, "text.format.name"],
    [
      "a format that is no schema",
      { text: { format: { type: "json_schema", name: "a", schema: "x" } } },
      "text.format.schema",
    ],
    ["two constraints", { text: { format: { type: "json_object" } }, regex: "a" }, null],
    ["a temperature too high", { temperature: 3 }, "temperature"],
    ["too many alternatives", { top_logprobs: 21 }, "top_logprobs"],
    ["what no engine can do", { use_beam_search: true }, "use_beam_search"],
    ["a truncation that is none", { truncation: "some" }, "truncation"],
    [
      "an image",
      { input: [{ role: "user", content: [{ type: "input_image", image_url: "data:," }] }] },
      "input[0].content[0].type",
    ],
  ])("%s", async (_, body, param) => {
    const gateway = answering("x");
    const { error } = await answered(await post(gateway, body), 400);
    expect(error).toMatchObject({ type: "invalid_request_error", param });
    expect(gateway.engine.calls).toHaveLength(0);
  });

  test("null is the same as absent, and what is unknown is ignored", async () => {
    const fields = [
      "instructions",
      "tools",
      "tool_choice",
      "text",
      "reasoning",
      "include",
      "metadata",
      "store",
      "stream",
      "truncation",
      "user",
      "conversation",
      "previous_response_id",
      "max_output_tokens",
      "temperature",
      "service_tier",
      "parallel_tool_calls",
      "background",
    ];
    const body = await whole(answering("x"), {
      ...Object.fromEntries(fields.map((name) => [name, null])),
      client_metadata: { a: 1 },
    });
    expect(body.status).toBe("completed");
  });

  test("what is said about a request is told again", async () => {
    const said = {
      metadata: { a: "b" },
      service_tier: "flex",
      safety_identifier: "s",
      prompt_cache_key: "k",
      user: "u",
      text: { format: { type: "text" }, verbosity: "low" },
      parallel_tool_calls: false,
      max_tool_calls: 3,
      instructions: "Do.",
    };
    expect(await whole(answering("x"), said)).toMatchObject(said);
  });
});

describe("engines that fail", () => {
  const failing = (text: string) =>
    stopped(
      responsesGateway((call) => {
        if (text !== "") call.chunk(encode(text)).idle();
        call.end(new EngineError("failed", "broken"));
      }),
    );

  test("before the first event: a status of its own, streamed or not", async () => {
    for (const stream of [false, true]) {
      const response = await post(failing(""), { stream });
      expect(response.status).toBe(500);
      expect(await response.json()).toMatchObject({ error: { type: "server_error" } });
    }
  });

  test("after it: the item is closed, error, failed", async () => {
    const gateway = failing("partly");
    const { body, events } = await streamed(gateway, {});
    expect(body).toMatchObject({
      status: "failed",
      error: { code: "server_error" },
      output: [{ status: "incomplete", content: [{ text: "partly" }] }],
    });
    expect(events.at(-2)?.type).toBe("error");
    expect((await post(gateway, {})).status).toBe(500);
  });
});

test("in a long silence the status goes out with the first events; what fails then is told in the stream", async () => {
  const engine = new ScriptedEngine(
    (call) => void setTimeout(() => call.end(new EngineError("overloaded", "full")), 1500),
  );
  const gateway = stopped(startGateway(["--sse-heartbeat-secs", "1"], engine, [modelEntry()]));
  const { body, events } = await streamed(gateway, {});
  expect(events.map(({ type }) => type)).toEqual([
    "response.created",
    "response.in_progress",
    "error",
    "response.failed",
  ]);
  expect(body["error"]).toEqual({ code: "rate_limit_exceeded", message: "full. Please try again in 1s." });
});
