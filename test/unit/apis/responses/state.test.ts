import { describe, expect, test } from "bun:test";
import { HistoryUnavailableError } from "../../../../src/history/errors.ts";
import type { HistoryStore } from "../../../../src/history/store.ts";
import { testControl } from "../../../support/control.ts";
import { testHistory } from "../../../support/kept.ts";
import { checkResponse } from "../../../support/schemas/responses.ts";
import { encode } from "../../generation/demo-tokenizer.ts";
import { ScriptedEngine } from "../../generation/scripted-engine.ts";
import { modelEntry, startGateway } from "../../server/gateway.ts";
import { play, written } from "../../server/tool-chat.ts";
import {
  answered,
  askBothWays,
  gatewaysOfTests,
  post,
  promptOf,
  responsesGateway,
  streamed,
  WEATHER,
  whole,
} from "./http.ts";

const { answering, stopped } = gatewaysOfTests();

describe("sealed reasoning", () => {
  const include = ["reasoning.encrypted_content"];
  const ask = { store: false, include, reasoning: { summary: "auto" } };

  test("comes back from the client and into the prompt; a foreign or altered blob does not", async () => {
    const server = answering(`<think>\nsecret thoughts\n</think>\n\n${written("get_weather", { city: "Oslo" })}`);
    const tools = [WEATHER];
    const { body } = await askBothWays(server, { ...ask, tools });
    const [thought, call] = body.output as unknown as [Record<string, unknown>, Record<string, unknown>];
    expect(thought["encrypted_content"]).toStartWith("e1.");
    const next = async (reasoning: object) => {
      const result = { type: "function_call_output", call_id: call["call_id"], output: "4 degrees" };
      await whole(server, { ...ask, tools, input: [{ role: "user", content: "Hi" }, reasoning, call, result] });
      return promptOf(server.engine.calls.at(-1));
    };
    expect(await next({ ...thought, summary: [] })).toContain("secret thoughts");
    const blob = String(thought["encrypted_content"]);
    expect(await next({ ...thought, summary: [], encrypted_content: `${blob.slice(0, -6)}AAAAAA` })).not.toContain(
      "secret",
    );
    expect(await next({ ...thought, summary: [], encrypted_content: "gAAAAABforeign" })).not.toContain("secret");
  });

  test("is not there unasked", async () => {
    const body = await whole(answering("<think>\nhm\n</think>\n\nYes."), {});
    expect(body.output[0]).not.toHaveProperty("encrypted_content");
  });
});

describe("turns that are kept", () => {
  test("a response goes on from another, with its reasoning but not its instructions", async () => {
    const server = answering(`<think>\nhm\n</think>\n\n${written("get_weather", { city: "Oslo" })}`);
    const first = await whole(server, { instructions: "Secret rule.", tools: [WEATHER] });
    const call = first.output.find(({ type }) => type === "function_call")!;
    const { body } = await streamed(server, {
      previous_response_id: first.id,
      tools: [WEATHER],
      input: [{ type: "function_call_output", call_id: call["call_id"], output: "4 degrees" }],
    });
    expect(body["previous_response_id"]).toBe(first.id);
    const prompt = promptOf(server.engine.calls[1]);
    expect(prompt).toContain("<|im_start|>user\nHi<|im_end|>");
    expect(prompt).toContain("<think>\nhm\n</think>");
    expect(prompt).toContain("<tool_response>\n4 degrees\n</tool_response>");
    expect(prompt).not.toContain("Secret rule");
  });

  test("references stand for items that were kept", async () => {
    const server = answering("I am a cat.");
    const first = await whole(server, {});
    const input = [
      { role: "user", content: "Who?" },
      { id: first.output[0]!.id, type: "item_reference" },
      { role: "user", content: "Sure?" },
    ];
    await whole(server, { input });
    expect(promptOf(server.engine.calls[1])).toContain("Who?<|im_end|>\n<|im_start|>assistant\nI am a cat.<|im_end|>");
    const unknown = await answered(await post(server, { input: [{ id: "msg_unknown" }] }), 404);
    expect(unknown["error"]).toMatchObject({ param: "input[0]", message: "Item with id 'msg_unknown' not found." });
  });

  test("store: false keeps nothing", async () => {
    const server = answering("x");
    const { body } = await streamed(server, { store: false });
    expect(body["store"]).toBe(false);
    const error = await answered(await post(server, { previous_response_id: body.id }), 404);
    expect(error["error"]).toMatchObject({ code: "previous_response_not_found", param: "previous_response_id" });
  });
});

test("what could not be kept was not answered", async () => {
  const history: HistoryStore = { ...testHistory(), putResponse: () => Promise.reject(new HistoryUnavailableError()) };
  const engine = new ScriptedEngine((call) => queueMicrotask(() => play(["Hello"], call)));
  const gateway = stopped(startGateway([], engine, [modelEntry()], 10, testControl, history));
  const { error } = await answered(await post(gateway, {}), 503);
  expect(error).toMatchObject({ code: "history_unavailable" });
  const { body } = await streamed(gateway, {});
  expect(body).toMatchObject({ status: "failed", error: { code: "server_error" }, output: [{ status: "completed" }] });
  expect(gateway.logged.filter((line) => line.includes("could not be stored"))).toHaveLength(2);
  expect((await whole(gateway, { store: false })).status).toBe("completed");
});

describe("truncation", () => {
  const turn = (letter: string) => [
    { role: "user", content: `${letter} `.repeat(60) },
    { role: "assistant", content: "ok" },
  ];
  const input = [...turn("a"), ...turn("b"), ...turn("c"), { role: "user", content: "last words" }];

  test("auto drops the oldest turns until the rest fits", async () => {
    const server = answering("ok", {}, { contextLength: 120 });
    const body = await whole(server, { input, truncation: "auto", instructions: "Rule." });
    const prompt = promptOf(server.engine.calls[0]);
    expect(prompt).toContain("Rule.");
    expect(prompt).toContain("last words");
    expect(prompt).not.toContain("a a");
    expect(prompt).not.toContain("b b");
    expect(body["truncation"]).toBe("auto");
    expect(server.engine.calls[0]!.request.tokenIds.length).toBeLessThan(120);
  });

  test("disabled, or nothing that could go, is an error of length", async () => {
    const server = answering("ok", {}, { contextLength: 120 });
    const refused = await answered(await post(server, { input }), 400);
    expect(refused["error"]).toMatchObject({ code: "context_length_exceeded", param: "input" });
    const single = await answered(await post(server, { input: "a ".repeat(500), truncation: "auto" }), 400);
    expect(single["error"]).toMatchObject({ code: "context_length_exceeded" });
  });
});

describe("a conversation that is longer than any prompt that is rendered", () => {
  const turn = [
    { role: "user", content: "a ".repeat(4_500_000) },
    { role: "assistant", content: "ok" },
  ];
  const input = [...turn, ...turn, { role: "user", content: "last words" }];

  test("is cut with auto, and else told as too long for the model", async () => {
    const server = answering("ok", {}, { contextLength: 120 });
    await whole(server, { input, truncation: "auto" });
    expect(promptOf(server.engine.calls[0])).toContain("last words");
    const refused = await answered(await post(server, { input }), 400);
    expect(refused["error"]).toMatchObject({ code: "context_length_exceeded", param: "input" });
  }, 20_000);

  test("is cut with auto where the context is not known", async () => {
    const server = answering("ok", {}, { contextLength: 0 });
    await whole(server, { input: [...input, ...turn.slice(1), { role: "user", content: "x" }], truncation: "auto" });
    expect(server.engine.calls[0]!.request.tokenIds.length).toBeGreaterThan(1000);
    const refused = await answered(await post(server, { input }), 400);
    expect(refused["error"]).toMatchObject({ code: "invalid_request", param: "input" });
  }, 20_000);
});

test("an input of which nothing can be told to a model is an error of the input", async () => {
  const server = answering("ok");
  const { error } = await answered(await post(server, { input: [{ type: "new_thing" }] }), 400);
  expect(error).toMatchObject({ message: "There must be at least one message", param: "input" });
});

test("a client that leaves ends the engine's work and the request; what there was is kept", async () => {
  const gateway = stopped(responsesGateway((call) => void call.chunk(encode("for ever")).idle()));
  const controller = new AbortController();
  const response = await post(gateway, { stream: true }, { signal: controller.signal });
  const first = await response.body!.getReader().read();
  const [id] = /resp_[0-9a-f]{50}/.exec(new TextDecoder().decode(first.value))!;
  controller.abort();
  while (gateway.engine.calls[0]!.cancelled === 0 || gateway.scopes.size > 0) await Bun.sleep(1);
  const kept = await gateway.history!.getResponse("default", id);
  expect(kept?.status).toBe("incomplete");
  const body: unknown = JSON.parse(kept!.body);
  checkResponse(body);
  expect(body.output).toMatchObject([{ status: "incomplete", content: [{ text: expect.stringContaining("for") }] }]);
});
