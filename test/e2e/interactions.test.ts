/** Interactions of the compiled program, judged by @google/genai. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { GoogleGenAI, type Interactions } from "@google/genai";
import { checkEvents, checkInteraction, type InteractionEvent, type Told } from "../support/schemas/interactions.ts";
import { BUILD_MS } from "./support/binary.ts";
import { covers } from "./support/covers.ts";
import { REMEMBERED, SLOW, startInteractions } from "./support/interactions.ts";
import { BOTH, CITIES, failureOf, HELLO, LONG, type ScriptedServer, THOUGHT, YES } from "./support/scripted.ts";

let server: ScriptedServer;
let client: GoogleGenAI["interactions"];
let model: string;
beforeAll(async () => {
  // background runs and their readers may be in different threads
  server = await startInteractions(["--threads", "2"]);
  ({ model } = server);
  client = new GoogleGenAI({ apiKey: "none", httpOptions: { baseUrl: server.gateway.url } }).interactions;
}, BUILD_MS);
afterAll(() => server?.stop());

const WEATHER: Interactions.Tool = {
  type: "function",
  name: "get_weather",
  description: "Tells the weather",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};
/** The client tries again four times, with pauses. */
const ONCE = { maxRetries: 0 };

type Asked = Omit<Interactions.InteractionCreateParams.CreateModelInteractionParamsNonStreaming, "model" | "stream">;
/** What the client itself adds to an answer. */
type Added = { sdkHttpResponse?: unknown; continuation_ids?: unknown; output_text?: unknown };
const create = async (asked: Asked) => {
  const interaction = await client.create({ model, ...asked }, ONCE);
  const {
    output_text: _,
    sdkHttpResponse: __,
    continuation_ids: ___,
    ...sent
  } = interaction as Added & typeof interaction;
  delete sent.usage?.initial_input_tokens;
  checkInteraction(sent);
  return interaction;
};

type Events = AsyncIterable<Interactions.InteractionSSEEvent>;
async function eventsOf(stream: Events): Promise<InteractionEvent[]> {
  const events: InteractionEvent[] = [];
  for await (const event of stream) events.push(event as InteractionEvent);
  return events;
}
const stream = async (asked: Asked): Promise<Told & { events: InteractionEvent[] }> => {
  const events = await eventsOf(await client.create({ model, ...asked, stream: true }, ONCE));
  return { ...checkEvents(events), events };
};
const textOf = ({ steps }: Pick<Told, "steps">): string =>
  steps.flatMap((step) => (step.type === "model_output" ? step.content.map(({ text }) => text) : [])).join("");
/** Results of the calls among steps. */
const resultsOf = (steps: readonly Interactions.Step[]): Interactions.Step[] =>
  steps.flatMap((step) =>
    step.type === "function_call"
      ? [
          {
            type: "function_result" as const,
            call_id: step.id,
            name: step.name,
            result: { ...step.arguments, degrees: 4 },
          },
        ]
      : [],
  );

test(covers("Interactions", "text", "@google/genai"), async () => {
  const { output_text, status, usage, id } = await create({ input: "say hello" });
  expect([output_text, status]).toEqual([HELLO, "completed"]);
  expect(usage!.total_output_tokens).toBeGreaterThan(5);
  expect(id).toStartWith("int_");
});

test(covers("Interactions", "stream", "@google/genai"), async () => {
  const told = await stream({ input: "say hello" });
  expect([textOf(told), told.last.status]).toEqual([HELLO, "completed"]);
  const whole = await create({ input: "say hello" });
  expect(told.last.usage).toEqual(whole.usage as never);
});

test(covers("Interactions", "reasoning", "@google/genai"), async () => {
  const whole = await create({ input: "think first" });
  const told = await stream({ input: "think first" });
  expect(told.steps).toEqual(whole.steps as never);
  const [thought] = told.steps;
  expect(thought).toMatchObject({
    type: "thought",
    summary: [{ type: "text", text: expect.stringContaining(THOUGHT) }],
  });
  expect(whole.output_text!.trim()).toBe(YES);
  expect(whole.usage!.total_thought_tokens).toBeGreaterThan(2);
  const hidden = await create({ input: "think first", generation_config: { thinking_summaries: "none" } });
  expect(hidden.steps[0]).toMatchObject({ type: "thought", summary: [] });
});

test(covers("Interactions", "one tool", "@google/genai"), async () => {
  const user = { type: "user_input" as const, content: [{ type: "text" as const, text: "weather of Oslo" }] };
  for (const thinking_summaries of ["auto", "none"]) {
    const config = { tools: [WEATHER], generation_config: { thinking_summaries } };
    const first = await create({ input: [user], ...config });
    expect(first.status).toBe("requires_action");
    expect(first.steps.map(({ type }) => type)).toEqual(["thought", "function_call"]);
    // with all that was said, or by what the server has kept; the thought is told again by its signature
    const replayed = await create({ input: [user, ...first.steps, ...resultsOf(first.steps)], ...config });
    expect(replayed.output_text).toBe(REMEMBERED);
    const previous_interaction_id = first.id;
    const kept = await create({ input: resultsOf(first.steps), previous_interaction_id, ...config });
    expect(kept.output_text).toBe(REMEMBERED);
    const told = await stream({ input: resultsOf(first.steps), previous_interaction_id, ...config });
    expect(textOf(told)).toBe(REMEMBERED);
  }
});

test(covers("Interactions", "parallel tools", "@google/genai"), async () => {
  const told = await stream({ input: "both towns", tools: [WEATHER] });
  const calls = told.steps.flatMap((step) => (step.type === "function_call" ? [step] : []));
  expect(calls.map((call) => call.arguments as object)).toEqual(CITIES.map((city) => ({ city })));
  expect(told.last.status).toBe("requires_action");
  const second = await create({
    input: resultsOf(told.steps as Interactions.Step[]).reverse(),
    previous_interaction_id: told.last.id,
    tools: [WEATHER],
  });
  expect(second.output_text).toBe(BOTH);
});

test(covers("Interactions", "structured output", "@google/genai"), async () => {
  const schema = { type: "object", properties: { city: { type: "string" }, degrees: { type: "number" } } };
  const response_format = { type: "text" as const, mime_type: "application/json" as const, schema };
  const { output_text } = await create({ input: "say JSON", response_format });
  expect(JSON.parse(output_text!)).toEqual({ city: "Oslo", degrees: 4 });
  expect(textOf(await stream({ input: "say JSON", response_format: [response_format] }))).toBe(output_text!);
  const asked = (await server.engine.requests()).at(-1)!.sampling;
  expect(JSON.stringify(asked)).toContain("degrees");
});

test(covers("Interactions", "error before the first byte", "@google/genai"), async () => {
  for (const isStream of [false, true]) {
    const asked = (input: string) => failureOf(client.create({ model, input, stream: isStream } as never, ONCE));
    expect(await asked("refuse")).toMatchObject({ status: 500, message: expect.stringContaining("boom") });
    expect(await asked("refuse busy")).toMatchObject({ status: 429 });
    const wrong = failureOf(client.create({ model: "nobody", input: "Hi", stream: isStream } as never, ONCE));
    expect(await wrong).toMatchObject({ status: 404 });
  }
});

/** The client yields errors and throws nothing: the end has to tell it. */
test(covers("Interactions", "error after it", "@google/genai"), async () => {
  for (const input of ["fail midway", "cut midway"]) {
    const told = await stream({ input });
    expect(told.last.status).toBe("failed");
    expect(textOf(told)).toStartWith("alpha");
    expect(told.events.at(-2)).toMatchObject({ event_type: "error", error: { code: expect.any(String) } });
    expect((await client.get(told.last.id)).status).toBe("failed");
  }
});

test(covers("Interactions", "cut stream", "@google/genai"), async () => {
  const told = await stream({ input: "count up", generation_config: { max_output_tokens: 20 } });
  expect(told.last).toMatchObject({ status: "incomplete", usage: { total_output_tokens: 20 } });
});

test(covers("Interactions", "long stream", "@google/genai"), async () => {
  const told = await stream({ input: "count up" });
  expect(textOf(told)).toBe(LONG);
  expect(told.events.length).toBeGreaterThan(500);
});

test(covers("Interactions", "stream again from an event", "@google/genai"), async () => {
  const { events, steps, last } = await stream({ input: "weather of Oslo", tools: [WEATHER] });
  for (const [index, { event_id }] of events.entries()) {
    const rest = await eventsOf(await client.get(last.id, { stream: true, last_event_id: event_id }));
    expect(checkEvents([...events.slice(0, index + 1), ...rest])).toEqual({ steps, last });
  }
});

test(covers("Interactions", "a conversation that the server keeps", "@google/genai"), async () => {
  const first = await create({ input: "my name is Ann" });
  const second = await create({ input: "what was my name?", previous_interaction_id: first.id });
  expect(second.output_text).toBe("Ann.");
  expect(second.previous_interaction_id).toBe(first.id);
  const kept = await client.get(first.id, { include_input: true });
  expect(kept.input).toEqual([{ type: "user_input", content: [{ type: "text", text: "my name is Ann" }] }]);
  const unknown = create({ input: "Hi", previous_interaction_id: "int_0" });
  expect(await failureOf(unknown)).toMatchObject({ status: 404 });
});

test(covers("Interactions", "store", "@google/genai"), async () => {
  const { id } = await create({ input: "say hello" });
  expect((await client.get(id)).output_text).toBe(HELLO);
  await client.delete(id);
  expect(await failureOf(client.get(id, {}, ONCE))).toMatchObject({ status: 404 });
  expect((await create({ input: "say hello", store: false })).id).toBe("");
});

async function finished(id: string) {
  for (let wait = 0; wait < 500; wait++) {
    const interaction = await client.get(id);
    if (interaction.status !== "in_progress") return interaction;
    await Bun.sleep(20);
  }
  throw new Error("it does not end");
}

test(covers("Interactions", "background", "@google/genai"), async () => {
  const begun = await create({ input: "take your time", background: true });
  expect(begun.status).toBe("in_progress");
  const events: InteractionEvent[] = [];
  for await (const event of await client.get(begun.id, { stream: true })) {
    events.push(event as InteractionEvent);
    if (events.length === 10) break; // it goes on without us
  }
  const rest = await eventsOf(await client.get(begun.id, { stream: true, last_event_id: events.at(-1)!.event_id }));
  const told = checkEvents([...events, ...rest]);
  expect([textOf(told), told.last.status]).toEqual([SLOW, "completed"]);
  expect((await finished(begun.id)).output_text).toBe(SLOW);
  const streamed = await eventsOf(
    await client.create({ model, input: "say hello", background: true, stream: true }, ONCE),
  );
  expect(textOf(checkEvents(streamed))).toBe(HELLO);
});

test(covers("Interactions", "cancel", "@google/genai"), async () => {
  const { id } = await create({ input: "take your time", background: true });
  for await (const { event_type } of await client.get(id, { stream: true })) if (event_type === "step.delta") break;
  const cancelled = await client.cancel(id);
  expect(cancelled.status).toBe("cancelled");
  expect(SLOW).toStartWith(cancelled.output_text!);
  expect(await finished(id)).toMatchObject({ status: "cancelled" });
});

test(covers("Models", "list and get", "@google/genai"), async () => {
  // without a version it asks /v1, where OpenAI's and Anthropic's clients list models as well
  for (const version of [{}, { apiVersion: "v1beta" }]) {
    const httpOptions = { baseUrl: server.gateway.url, ...version };
    const { models } = new GoogleGenAI({ apiKey: "none", httpOptions });
    const names: string[] = [];
    for await (const { name } of await models.list({ config: { pageSize: 1 } })) names.push(name!);
    expect(names).toContain(`models/${model}`);
    const found = await models.get({ model });
    expect(found.name).toBe(`models/${model}`);
    expect(found.inputTokenLimit).toBeGreaterThan(0);
    expect(await failureOf(models.get({ model: "un/known" }))).toMatchObject({ name: "ApiError", status: 404 });
    expect((await client.create({ model: names[0]!, input: "say hello" }, ONCE)).output_text).toBe(HELLO);
  }
});
