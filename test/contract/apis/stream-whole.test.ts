/**
 * What models write, over all samples of the parsers, is told the same by every API, streamed or whole. Each object and event is checked
 * against the schema of its API on the way, and the order of events.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { reasoningFamily } from "../../../src/parsers/names.ts";
import * as interactions from "../../support/schemas/interactions.ts";
import * as messages from "../../support/schemas/messages.ts";
import { responseSchema } from "../../support/schemas/responses.ts";
import * as responses from "../../support/schemas/responses-order.ts";
import { checkGrammar, fold, readFrames } from "../../unit/apis/chat/chunks.ts";
import { ScriptedEngine } from "../../unit/generation/scripted-engine.ts";
import { type Gateway, MODEL, modelEntry, startGateway } from "../../unit/server/gateway.ts";
import { play } from "../../unit/server/tool-chat.ts";
import { SAMPLE_FILES, type Sample, samplesOf, TOOLS } from "../parsers/samples.ts";

/** An answer in the terms of no API. Arguments as text. */
interface Said {
  readonly reasoning: string;
  readonly text: string;
  readonly calls: readonly (readonly [name: string, args: string])[];
  /** How it ended, in the API's words. */
  readonly end: string;
}

interface Api {
  readonly path: string;
  readonly body: object;
  whole(answer: unknown): Said;
  streamed(text: string): Said;
}

const tools = TOOLS.map(({ name, parameters }) => ({ name, parameters }));
const joined = (texts: readonly unknown[]): string => texts.join("");
type Loose = Readonly<Record<string, unknown>>;
const list = (value: unknown): readonly Loose[] => (value ?? []) as readonly Loose[];
const ofType = (items: unknown, type: string) => list(items).filter((item) => item["type"] === type);

function chatSaid(choice: unknown): Said {
  const { message, finish_reason: end } = choice as { message: Loose; finish_reason: string };
  return {
    reasoning: String(message["reasoning_content"] ?? ""),
    text: String(message["content"] ?? ""),
    calls: list(message["tool_calls"]).map((call) => {
      const { name, arguments: args } = call["function"] as { name: string; arguments: string };
      return [name, args];
    }),
    end,
  };
}

function responseSaid(body: unknown): Said {
  const { output, status } = body as { output: unknown; status: string };
  const texts = (type: string, part: string) =>
    ofType(output, type).flatMap((item) => ofType(item["content"], part).map(({ text }) => text));
  return {
    reasoning: joined(texts("reasoning", "reasoning_text")),
    text: joined(texts("message", "output_text")),
    calls: ofType(output, "function_call").map((item) => [String(item["name"]), String(item["arguments"])]),
    end: status,
  };
}

function messageSaid(message: unknown): Said {
  const { content, stop_reason: end } = message as { content: unknown; stop_reason: string };
  return {
    reasoning: joined(ofType(content, "thinking").map(({ thinking }) => thinking)),
    text: joined(ofType(content, "text").map(({ text }) => text)),
    calls: ofType(content, "tool_use").map(({ name, input }) => [
      String(name),
      typeof input === "string" ? input : JSON.stringify(input),
    ]),
    end,
  };
}

function interactionSaid({ steps, status }: { readonly steps: unknown; readonly status: string }): Said {
  const parts = (type: string, member: string) =>
    ofType(steps, type).flatMap((step) => list(step[member]).map(({ text }) => text));
  return {
    reasoning: joined(parts("thought", "summary")),
    text: joined(parts("model_output", "content")),
    calls: ofType(steps, "function_call").map((step) => [String(step["name"]), JSON.stringify(step["arguments"])]),
    end: status,
  };
}

const APIS: Readonly<Record<string, Api>> = {
  "Chat Completions": {
    path: "/v1/chat/completions",
    body: {
      messages: [{ role: "user", content: "a" }],
      tools: tools.map((each) => ({ type: "function", function: each })),
    },
    whole: (answer) => chatSaid((answer as { choices: unknown[] }).choices[0]),
    streamed(text) {
      const frames = readFrames(text);
      checkGrammar(frames, 1, false);
      return chatSaid(fold(frames, 1)[0]);
    },
  },
  Responses: {
    path: "/v1/responses",
    body: { input: "a", store: false, tools: tools.map((each) => ({ type: "function", strict: false, ...each })) },
    whole(answer) {
      messages.check(responseSchema, answer, "response");
      return responseSaid(answer);
    },
    streamed(text) {
      const { events, done } = responses.readEvents(text);
      expect(done).toBe(true);
      return responseSaid(responses.checkEvents(events));
    },
  },
  Messages: {
    path: "/v1/messages",
    body: {
      max_tokens: 2000,
      thinking: { type: "enabled", budget_tokens: 1024, display: "summarized" },
      messages: [{ role: "user", content: "a" }],
      tools: tools.map(({ name, parameters }) => ({ name, input_schema: parameters })),
    },
    whole(answer) {
      messages.check(messages.message, answer, "message");
      return messageSaid(answer);
    },
    streamed: (text) => messageSaid(messages.foldStream(messages.readEvents(text))),
  },
  Interactions: {
    path: "/v1beta/interactions",
    body: { input: "a", store: false, tools: tools.map((each) => ({ type: "function", ...each })) },
    whole: (answer) => interactionSaid(interactions.checkInteraction(answer)),
    streamed(text) {
      const { events, done } = interactions.readEvents(text);
      expect(done).toBe(true);
      const { steps, last } = interactions.checkEvents(events);
      return interactionSaid({ steps, status: last.status });
    },
  },
};

/** What a model says, and in how large pieces; by turns, so that each request has others. */
let answer = "";
let turn = 0;
const SIZES = [1, 1000, 3, 2, 7, 1, 5, 13];
const engine = () =>
  new ScriptedEngine((call) => {
    turn = (turn + 1) % SIZES.length;
    play([answer], call, { size: SIZES[turn]! });
  });

const gateways = new Map<string, Gateway>();
afterAll(() => Promise.all([...gateways.values()].map((gateway) => gateway.stop())));

/** A gateway whose model writes as the sample's does. */
function gatewayOf({ tool, reasoning, startsInReasoning }: Sample): Gateway {
  const key = `${tool} ${reasoning} ${startsInReasoning}`;
  let gateway = gateways.get(key);
  if (gateway === undefined) {
    const opener = startsInReasoning ? (reasoningFamily(reasoning)?.open[0] ?? "") : "";
    const source = `{% for m in messages %}{{ m.content }}{% endfor %}${opener}`;
    const parsers = { tool: tool === "passthrough" ? undefined : tool, reasoning };
    gateway = startGateway([], engine(), [modelEntry({ template: { source, specials: {} }, parsers })]);
    gateways.set(key, gateway);
  }
  return gateway;
}

async function said(gateway: Gateway, api: Api, stream: boolean): Promise<Said> {
  const response = await fetch(gateway.url + api.path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: MODEL, ...api.body, ...(stream && { stream }) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.status}: ${text}`);
  return stream ? api.streamed(text) : api.whole(JSON.parse(text));
}

const isJson = (text: string): boolean => {
  try {
    return typeof JSON.parse(text) === "object";
  } catch {
    return false;
  }
};

/** Without what APIs whose arguments are objects cannot say: the spelling of JSON, and what a call that was cut would have had. */
const comparable = ({ reasoning, text, calls }: Said, isComplete: readonly boolean[]) => ({
  reasoning,
  text,
  calls: calls.map(([name, args], at) => [name, isComplete[at] === true ? (JSON.parse(args) as unknown) : "cut"]),
});

const seen = { samples: 0, reasoning: 0, calls: 0 };
const names = Object.keys(APIS);

describe.each(SAMPLE_FILES.map((file) => [file]))("%s", (file) => {
  const samples = samplesOf(file);
  test.each(names)(
    "%s: streamed as whole, and as Chat Completions",
    async (name) => {
      const api = APIS[name]!;
      for (const sample of samples) {
        answer = sample.input;
        const gateway = gatewayOf(sample);
        const chat = await said(gateway, APIS["Chat Completions"]!, false);
        const isComplete = chat.calls.map(([, args]) => isJson(args));
        const whole = await said(gateway, api, false);
        const streamed = await said(gateway, api, true);
        expect({ id: sample.id, end: streamed.end, ...comparable(streamed, isComplete) }).toEqual({
          id: sample.id,
          end: whole.end,
          ...comparable(whole, isComplete),
        });
        expect({ id: sample.id, ...comparable(whole, isComplete) }).toEqual({
          id: sample.id,
          ...comparable(chat, isComplete),
        });
        seen.samples++;
        if (chat.reasoning !== "") seen.reasoning++;
        if (isComplete.includes(true)) seen.calls++;
      }
    },
    60_000,
  );
});

test("the samples are there, and hold what is to be told", () => {
  expect(seen.samples).toBe(names.length * 365);
  expect(seen.reasoning).toBeGreaterThan(names.length * 60);
  expect(seen.calls).toBeGreaterThan(names.length * 150);
});
