/** Interactions whole and streamed are one answer; each object and event is of its schema. */
import { afterEach, describe, expect, test } from "bun:test";
import { EngineError } from "../../../../src/engines/engine.ts";
import { until } from "../../../support/until.ts";
import { encode } from "../../generation/demo-tokenizer.ts";
import { type Gateway, MODEL } from "../../server/gateway.ts";
import { play, written } from "../../server/tool-chat.ts";
import { askAllWays, CLOCK, get, interactionsGateway, post, refusal, streamed, told, WEATHER, whole } from "./http.ts";

let gateway: Gateway;
afterEach(() => gateway?.stop());

const answering = (text: string, script: Parameters<typeof play>[2] = {}) => {
  gateway = interactionsGateway((call) => play([text], call, script));
  return gateway;
};

describe("an answer", () => {
  test("of text", async () => {
    const { one, stream } = await askAllWays(answering("naïve 👩‍👩‍👧 日本 done"), {});
    expect(one.steps).toEqual([{ type: "model_output", content: [{ type: "text", text: "naïve 👩‍👩‍👧 日本 done" }] }]);
    expect(one).toMatchObject({ object: "interaction", status: "completed", model: MODEL, service_tier: "standard" });
    expect(Date.parse(one.created)).toBeGreaterThan(Date.now() - 60_000);
    expect(Date.parse(one.updated)).toBeGreaterThanOrEqual(Date.parse(one.created));
    expect(one.usage!.total_input_tokens).toBeGreaterThan(5);
    expect(stream.events.filter(({ event_type: type }) => type === "step.delta").length).toBeGreaterThan(3);
  });

  test("of nothing has an empty text", async () => {
    const { one } = await askAllWays(answering(""), {});
    expect(one.steps).toEqual([{ type: "model_output", content: [{ type: "text", text: "" }] }]);
  });

  test("with thoughts, which are signed", async () => {
    const { one } = await askAllWays(answering("<think>\nHm, hm.\n</think>\n\nYes."), {});
    expect(one.steps.map(({ type }) => type)).toEqual(["thought", "model_output"]);
    expect(one.steps[0]).toMatchObject({ summary: [{ type: "text", text: "\nHm, hm.\n" }] });
    expect((one.steps[0] as { signature: string }).signature).toStartWith("s1.");
    expect(one.usage!.total_thought_tokens).toBeGreaterThan(3);
    expect(one.usage!.total_output_tokens).toBeGreaterThan(1);
  });

  test("with thoughts that are hidden", async () => {
    const { one } = await askAllWays(answering("<think>\nHm, hm.\n</think>\n\nYes."), {
      generation_config: { thinking_summaries: "none" },
    });
    expect(one.steps[0]).toMatchObject({ type: "thought", summary: [] });
    expect(JSON.stringify(one)).not.toContain("Hm");
    expect((one.steps[0] as { signature: string }).signature).toStartWith("e1.");
  });

  test("with a call needs action; arguments are an object, with its numbers as the model wrote them", async () => {
    const { one, stream } = await askAllWays(
      answering(`Wait.${written("get_weather", '{"city": "Oslo", "x": 1.0}')}`),
      {
        tools: [WEATHER],
      },
    );
    expect(one.status).toBe("requires_action");
    expect(one.steps).toMatchObject([
      { type: "model_output" },
      { type: "function_call", name: "get_weather", arguments: { city: "Oslo", x: 1 } },
    ]);
    expect(await (await post(gateway, { tools: [WEATHER] })).text()).toContain('"x": 1.0');
    expect(stream.last.status).toBe("requires_action");
  });

  test("with parallel calls", async () => {
    const text =
      written("get_weather", { city: "Oslo" }) + written("get_weather", { city: "Rome" }) + written("get_time", {});
    const { one } = await askAllWays(answering(text), { tools: [WEATHER, CLOCK] });
    const calls = one.steps.map((step) => (step.type === "function_call" ? [step.name, step.arguments] : step.type));
    expect(calls).toEqual([
      ["get_weather", { city: "Oslo" }],
      ["get_weather", { city: "Rome" }],
      ["get_time", {}],
    ]);
    expect(new Set(one.steps.map((step) => (step as { id: string }).id)).size).toBe(3);
  });

  test("that was cut is incomplete", async () => {
    const { one } = await askAllWays(answering("Once upon", { reason: "length" }), {});
    expect(one.status).toBe("incomplete");
    expect(one.steps).toMatchObject([{ content: [{ text: "Once upon" }] }]);
  });

  test("that was cut in a call has not got the call", async () => {
    const text = written("get_weather", '{"city": "Oslo"}').slice(0, -16);
    const { one, stream } = await askAllWays(answering(`Wait.${text}`, { reason: "length" }), { tools: [WEATHER] });
    expect(one).toMatchObject({ status: "incomplete", steps: [{ type: "model_output" }] });
    expect(
      stream.events.some((event) => event.event_type === "step.start" && event.step.type === "function_call"),
    ).toBe(true);
  });
});

test("the request is repeated; nothing of it is in the events", async () => {
  const body = {
    system_instruction: "Be brief.",
    tools: [WEATHER],
    generation_config: { temperature: 0.5, tool_choice: "auto" },
    labels: { team: "a" },
    service_tier: "flex",
    response_modalities: ["text"],
  };
  const { one } = await askAllWays(answering("Yes."), body);
  expect(one).toMatchObject(body);
});

test("what is not to be stored has no id and cannot be found", async () => {
  answering("Yes.");
  const one = await whole(gateway, { store: false });
  expect(one.id).toBe("");
  expect((await streamed(gateway, { store: false })).last.id).toBe("");
});

test("all versions of the path", async () => {
  answering("Yes.");
  for (const version of ["v1", "v1beta", "v1alpha"]) {
    const { id } = await whole(gateway, {}, `/${version}/interactions`);
    expect((await fetch(`${gateway.url}/${version}/interactions/${id}`)).status).toBe(200);
  }
});

describe("an error", () => {
  test("before the first byte has its status, and nothing is stored", async () => {
    gateway = interactionsGateway((call) => call.end(new EngineError("invalid", "no such LoRA")));
    for (const stream of [false, true]) {
      const error = await refusal(gateway, { stream });
      expect(error).toMatchObject({ code: 400, status: "INVALID_ARGUMENT" });
    }
    expect((await gateway.history!.listResponses("default", "interaction", { limit: 10, order: "asc" })).data).toEqual(
      [],
    );
  });

  test("after it ends the stream as failed, and that is stored", async () => {
    gateway = interactionsGateway((call) => {
      call.chunk(encode("Once upon")).idle();
      call.end(new EngineError("failed", "the GPU is gone"));
    });
    const { last, steps, events } = await streamed(gateway, {});
    expect(last).toMatchObject({ status: "failed", errors: [{ code: expect.any(String) }] });
    expect(events.at(-2)!.event_type).toBe("error");
    expect(steps).toEqual([{ type: "model_output", content: [{ type: "text", text: "Once upon" }] }]);
    const stored = await get(gateway, last.id);
    expect(stored).toMatchObject({ status: "failed", steps: [...steps] });
    const again = await told(await fetch(`${gateway.url}/v1beta/interactions/${last.id}?stream=true`));
    expect(again.last).toEqual(last);
  });

  test("leaves half a call open", async () => {
    gateway = interactionsGateway((call) => {
      call.chunk(encode('<tool_call>\n{"name": "get_weather", "arguments": {"city": "Os')).idle();
      call.end(new EngineError("failed", "the GPU is gone"));
    });
    const { last, steps, events } = await streamed(gateway, { tools: [WEATHER] });
    expect(last.status).toBe("failed");
    expect(steps).toEqual([]);
    expect(events.map(({ event_type: type }) => type)).not.toContain("step.stop");
  });
});

test("a long silence opens the stream; what fails then is told in it", async () => {
  gateway = interactionsGateway(
    (call) => void setTimeout(() => call.end(new EngineError("overloaded", "full")), 2500),
    {},
    ["--sse-heartbeat-secs", "1"],
  );
  const { last, events } = await streamed(gateway, {});
  expect(last).toMatchObject({ status: "failed", errors: [{ code: "RESOURCE_EXHAUSTED" }] });
  expect(events).toHaveLength(3);
});

test("a client that leaves ends the work, and what there was is stored", async () => {
  gateway = interactionsGateway((call) => void call.chunk(encode("Once upon")).idle());
  const leaving = new AbortController();
  const response = await fetch(`${gateway.url}/v1beta/interactions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: MODEL, input: "Hi", stream: true }),
    signal: leaving.signal,
  });
  const reader = response.body!.getReader();
  const first = new TextDecoder().decode((await reader.read()).value);
  const id = /"id":"(int_[0-9a-f]{50})"/.exec(first)?.[1];
  leaving.abort();
  await reader.read().catch(() => {});
  await until(() => gateway.scopes.size === 0, "the end of the request");
  expect(gateway.engine.calls[0]!.cancelled).toBe(1);
  expect(await get(gateway, id!)).toMatchObject({
    status: "incomplete",
    steps: [{ content: [{ text: "Once upon" }] }],
  });
});

test("an answer that cannot be stored has failed", async () => {
  answering("Yes.");
  await gateway.history!.close();
  const spoiled = gateway.history as unknown as { putResponse: () => Promise<never> };
  spoiled.putResponse = () => Promise.reject(new Error("the disk is full"));
  expect(await refusal(gateway, {})).toMatchObject({ code: 500, status: "INTERNAL" });
  expect((await streamed(gateway, {})).last).toMatchObject({ status: "failed", errors: [{ code: "INTERNAL" }] });
});
