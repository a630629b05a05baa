import { describe, expect, test } from "bun:test";
import { ResponseCancelledError } from "../../../../src/apis/responses/errors.ts";
import { ResponseWriter, type WriterOptions } from "../../../../src/apis/responses/writer.ts";
import {
  ClientClosedError,
  EngineFailureError,
  type GatewayError,
  InvalidRequestError,
} from "../../../../src/errors.ts";
import type { GenerationEvent, LogprobEntry, OutputPart } from "../../../../src/generation/events.ts";
import { checkResponse } from "../../../support/schemas/responses.ts";
import { checkEvents, readEvents } from "../../../support/schemas/responses-order.ts";
import { random } from "../../generation/random.ts";
import { call, collect, Frames, finish, output, play, reasoning, text, USAGE, writerOptions } from "./answers.ts";

const failure = (error: GatewayError = new EngineFailureError(500, "engine_failed", "it failed")): GenerationEvent => ({
  type: "error",
  error,
});

async function told(events: readonly GenerationEvent[], more: Partial<WriterOptions> = {}) {
  const { out, writer } = await play(events, more);
  const read = readEvents(out.text);
  const body = checkEvents(read.events);
  expect(read.done).toBe(true);
  expect(out.sequences).toEqual(read.events.map(({ sequence_number }) => sequence_number));
  return { body, types: read.events.map(({ type }) => type.replace("response.", "")), read, writer, out };
}

describe("the frames of a text", () => {
  test("are these, in this order", async () => {
    const { body, out } = await told([text("Hel"), text("lo"), finish(), USAGE]);
    const frames = out.text.split("\n\n").slice(0, -1);
    const id = body.output[0]!.id;
    const at = `"item_id":"${id}","output_index":0,"content_index":0`;
    expect(frames.slice(2, 8)).toEqual([
      `event: response.output_item.added\ndata: {"type":"response.output_item.added","output_index":0,"item":{"id":"${id}","type":"message","status":"in_progress","role":"assistant","content":[]},"sequence_number":2}`,
      `event: response.content_part.added\ndata: {"type":"response.content_part.added",${at},"part":{"type":"output_text","text":"","annotations":[],"logprobs":[]},"sequence_number":3}`,
      `event: response.output_text.delta\ndata: {"type":"response.output_text.delta",${at},"delta":"Hel","logprobs":[],"sequence_number":4}`,
      `event: response.output_text.delta\ndata: {"type":"response.output_text.delta",${at},"delta":"lo","logprobs":[],"sequence_number":5}`,
      `event: response.output_text.done\ndata: {"type":"response.output_text.done",${at},"text":"Hello","logprobs":[],"sequence_number":6}`,
      `event: response.content_part.done\ndata: {"type":"response.content_part.done",${at},"part":{"type":"output_text","text":"Hello","annotations":[],"logprobs":[]},"sequence_number":7}`,
    ]);
    expect(frames.at(-1)).toBe("data: [DONE]");
    expect(body.usage).toEqual({
      input_tokens: 5,
      input_tokens_details: { cached_tokens: 2, cache_write_tokens: 0 },
      output_tokens: 3,
      output_tokens_details: { reasoning_tokens: 1 },
      total_tokens: 8,
    });
    expect([out.ends, out.cuts]).toEqual([1, 0]);
  });

  test("survive their JSON", async () => {
    const nasty = ['"', "\\", "\n\n", "\r", "\u2028", "\u0000", "data: [DONE]\n\n", "日本😀", "</script>"];
    const { body } = await told([...nasty.map(text), finish(), USAGE]);
    expect(body.output).toMatchObject([{ content: [{ text: nasty.join("") }] }]);
  });
});

describe("items", () => {
  test("an empty answer has a message, with its whole life", async () => {
    const { types } = await told([finish(), USAGE]);
    expect(types).toEqual([
      "created",
      "in_progress",
      "output_item.added",
      "content_part.added",
      "output_text.done",
      "content_part.done",
      "output_item.done",
      "completed",
    ]);
  });

  test("reasoning alone is followed by an empty message, unless it was cut", async () => {
    const whole = await told([reasoning("hm"), finish(), USAGE]);
    expect(whole.body.output).toMatchObject([{ type: "reasoning" }, { type: "message", content: [{ text: "" }] }]);
    const cut = await told([reasoning("hm"), finish("length"), USAGE]);
    expect(cut.body).toMatchObject({
      status: "incomplete",
      incomplete_details: { reason: "max_output_tokens" },
      output: [{ type: "reasoning", status: "incomplete", summary: [], content: [{ text: "hm" }] }],
    });
  });

  test("reasoning, text, calls, text again: one index after the other, ids that are not call ids", async () => {
    const { body, types } = await told([
      reasoning("hm"),
      text("let me see"),
      call(0, "a", ['{"x":', "1}"]),
      call(1, "b", []),
      call(2, "run", ["print(1)"], "custom"),
      text("more"),
      finish("tool_calls"),
      USAGE,
    ]);
    expect(body.output).toMatchObject([
      { type: "reasoning", status: "completed" },
      { type: "message", content: [{ type: "output_text", text: "let me see" }] },
      { type: "function_call", call_id: "call_0", name: "a", arguments: '{"x":1}', status: "completed" },
      { type: "function_call", call_id: "call_1", name: "b", arguments: "" },
      { type: "custom_tool_call", call_id: "call_2", name: "run", input: "print(1)" },
      { type: "message", content: [{ text: "more" }] },
    ]);
    expect(types.filter((type) => type === "custom_tool_call_input.delta")).toHaveLength(1);
    expect(types.filter((type) => type === "function_call_arguments.done")).toHaveLength(2);
  });

  test("a call that was cut is incomplete, with the arguments that there are", async () => {
    const parts: OutputPart[] = [
      { type: "tool_start", call: 0, id: "call_0", name: "a", kind: "function" },
      { type: "tool_arguments", call: 0, text: '{"x' },
    ];
    const { body } = await told([output(...parts), finish("length"), USAGE]);
    expect(body).toMatchObject({ status: "incomplete", output: [{ status: "incomplete", arguments: '{"x' }] });
  });

  test("a tool of a namespace has the client's name, in all of its events", async () => {
    const origin = (name: string) => ({ name: name.split("__")[1]!, namespace: name.split("__")[0]! });
    const { body, read } = await told([call(0, "mail__send", ["{}"]), finish(), USAGE], { origin });
    expect(body.output).toMatchObject([{ name: "send", namespace: "mail" }]);
    expect(read.events.find(({ type }) => type.endsWith("arguments.done"))?.["name"]).toBe("send");
  });

  test("reasoning is told as a summary where one was asked for, and sealed where that was", async () => {
    const { body, types } = await told([reasoning("a"), reasoning("b"), text("c"), finish(), USAGE], {
      asSummary: true,
      seal: (value) => `sealed ${value}`,
    });
    expect(types.slice(2, 8)).toEqual([
      "output_item.added",
      "reasoning_summary_part.added",
      "reasoning_summary_text.delta",
      "reasoning_summary_text.delta",
      "reasoning_summary_text.done",
      "reasoning_summary_part.done",
    ]);
    expect(body.output[0]).toEqual({
      id: body.output[0]!.id,
      type: "reasoning",
      status: "completed",
      summary: [{ type: "summary_text", text: "ab" }],
      encrypted_content: "sealed ab",
    });
  });

  test("logprobs come with the deltas and again with the whole text", async () => {
    const entry: LogprobEntry = { id: 1, logprob: -0.5, top: [{ id: 1, logprob: -0.5 }] };
    const drawn = { token: "a", logprob: -0.5, bytes: [97], top_logprobs: [] };
    const event = { ...text("a"), logprobs: [entry] } as GenerationEvent;
    const { body, read } = await told([event, event, finish(), USAGE], { logprobs: (all) => all.map(() => drawn) });
    expect(body.output).toMatchObject([{ content: [{ logprobs: [drawn, drawn] }] }]);
    expect(read.events.filter(({ delta }) => delta !== undefined).map(({ logprobs }) => logprobs)).toEqual([
      [drawn],
      [drawn],
    ]);
  });
});

describe("failures", () => {
  test("after the first event: the item is closed, error, failed with the items", async () => {
    const { body, types, read } = await told([reasoning("hm"), text("a"), failure()]);
    expect(types.slice(-4)).toEqual(["content_part.done", "output_item.done", "error", "failed"]);
    expect(body).toMatchObject({
      status: "failed",
      error: { code: "server_error", message: "it failed" },
      output: [{ status: "completed" }, { status: "incomplete", content: [{ text: "a" }] }],
    });
    expect(read.events.at(-2)).toMatchObject({ code: "server_error", message: "it failed", param: null });
  });

  test("before the first event: nothing is written", async () => {
    const { out, writer } = await play([failure()]);
    expect(out.text).toBe("");
    expect([writer.started, writer.finished, writer.error?.code, out.ends]).toEqual([false, true, "engine_failed", 0]);
  });

  test("say how long to wait where an engine is full, and what the request did wrong", async () => {
    const busy = new EngineFailureError(429, "engine_overloaded", "Too busy", { retryAfterSecs: 3 });
    expect((await told([text("a"), failure(busy)])).body["error"]).toEqual({
      code: "rate_limit_exceeded",
      message: "Too busy. Please try again in 3s.",
    });
    expect((await told([text("a"), failure(new InvalidRequestError("no"))])).body["error"]).toEqual({
      code: "invalid_prompt",
      message: "no",
    });
  });

  test("a client that left is cut, and what there was is kept as incomplete", async () => {
    const kept: unknown[] = [];
    const { out } = await play([text("a"), failure(new ClientClosedError())], {
      save: async (object) => void kept.push(object),
    });
    expect([out.cuts, out.text.includes("error\n")]).toEqual([1, false]);
    expect(kept).toMatchObject([{ status: "incomplete", output: [{ status: "incomplete" }] }]);
    checkResponse(JSON.parse(JSON.stringify(kept[0])));
  });

  test("a cancelled response ends without an event of that name", async () => {
    const kept: unknown[] = [];
    const { out } = await play([text("a"), failure(new ResponseCancelledError())], {
      save: async (object) => void kept.push(object),
    });
    const { events, done } = readEvents(out.text);
    expect([events.at(-1)?.type, done]).toEqual(["response.output_item.done", true]);
    expect(kept).toMatchObject([{ status: "cancelled" }]);
  });
});

describe("keeping", () => {
  test("nobody is told of the end before it is kept", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const out = new Frames();
    const writer = new ResponseWriter(writerOptions({ save: () => promise }), out);
    writer.begun();
    writer.ended({
      reason: "stop",
      matchedStop: undefined,
      isClamped: false,
      promptTokens: 1,
      cachedTokens: 0,
      completionTokens: 0,
      reasoningTokens: 0,
    });
    await Bun.sleep(1);
    expect([writer.finished, out.ends, out.text.includes("completed\n")]).toEqual([true, 0, false]);
    resolve();
    await writer.settled;
    expect(checkEvents(readEvents(out.text).events).status).toBe("completed");
  });

  test("what could not be kept has failed", async () => {
    const { body } = await told([text("a"), finish(), USAGE], { save: () => Promise.reject(new Error("disk")) });
    expect(body).toMatchObject({ status: "failed", error: { code: "server_error", message: "Internal error" } });
  });

  test("a failure that could not be kept is told all the same", async () => {
    const lost: unknown[] = [];
    const { body } = await told([text("a"), failure()], {
      save: () => Promise.reject(new Error("disk")),
      onLost: (error) => void lost.push(error),
    });
    expect([body.status, lost.length]).toEqual(["failed", 1]);
  });
});

test("a response that waited tells of it", async () => {
  const { types } = await told([text("a"), finish(), USAGE], { wasQueued: true });
  expect(types.slice(0, 4)).toEqual(["created", "queued", "in_progress", "output_item.added"]);
});

/** A random answer as events. */
function randomEvents(seed: number): GenerationEvent[] {
  const { below, pick } = random(seed);
  const events: GenerationEvent[] = [];
  let calls = 0;
  for (let n = below(8); n > 0; n--) {
    const piece = () => pick(["a", "ü😀", '"\\\n', " two words"]);
    const kind = below(4);
    if (kind === 0) events.push(reasoning(piece()), reasoning(piece()));
    else if (kind === 1) events.push(text(piece()));
    else if (kind === 2)
      events.push(call(calls++, pick(["f", "g"]), ["{", "}"].slice(below(3)), pick(["function", "custom"])));
    else events.push(output({ type: "text", text: piece() }, { type: "reasoning", text: piece() }));
  }
  const ending = below(4);
  if (ending === 0) events.push(text("x"), failure());
  else events.push(finish(pick(["stop", "length", "tool_calls"])), USAGE);
  return events;
}

test("random answers: every stream keeps the order, and is the object that is given without one", async () => {
  const plain = (value: unknown) => JSON.parse(JSON.stringify(value).replaceAll(/(rs|msg|fc|ctc)_[0-9a-f]{50}/g, "$1"));
  for (let seed = 1; seed <= 2000; seed++) {
    const events = randomEvents(seed);
    const options = { asSummary: seed % 2 === 0, seal: seed % 3 === 0 ? (value: string) => `e${value}` : undefined };
    const { body } = await told(events, options);
    const whole = (await collect(events, options)).object();
    checkResponse(JSON.parse(JSON.stringify(whole)));
    const { completed_at: _, ...streamed } = plain(body);
    expect({ seed, ...plain(whole) }).toMatchObject({ seed, ...streamed });
  }
});
