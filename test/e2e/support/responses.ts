/** What the tests of Responses ask, and how the engine answers it: with Qwen 3's template and parsers. */
import OpenAI from "openai";
import { startEngine, startGateway, type TestEngine, type TestGateway } from "./processes.ts";

export const HELLO = "naïve 👩‍👩‍👧 日本 done";
export const THOUGHT = "hm hm";
export const YES = "Yes.";
export const LONG = Array.from({ length: 1500 }, (_, i) => `word${i}`).join(" ");
export const CITIES = ["Oslo", "Łódź"];
export const BOTH = "Both have 4 degrees.";
export const ONE = "Oslo has 4 degrees.";
export const CODE = 'print("hi")\n';
export const degrees = (city: string): string => JSON.stringify({ city, degrees: 4 });

const call = (name: string, args: unknown) => `<tool_call>\n${JSON.stringify({ name, arguments: args })}\n</tool_call>`;
const weather = (city: string) => call("get_weather", { city });
const result = (text: string) => `<tool_response>\n${text}\n</tool_response>`;
const midway = { text: "alpha beta gamma delta epsilon", ms_per_token: 20, finish_reason: "stop" };

const SCRIPT = JSON.stringify([
  { contains: CITIES.map((city) => result(degrees(city))).join("\n"), text: BOTH, tokens_per_message: [1, 3, 2] },
  { contains: result(degrees("Oslo")), text: ONE },
  { contains: result("printed hi"), text: "It printed hi." },
  { contains: "say hello", text: HELLO, tokens_per_message: [1, 3, 2, 1] },
  { contains: "think first", text: `<think>\n${THOUGHT}\n</think>\n\n${YES}`, tokens_per_message: [1, 2] },
  {
    contains: "weather of Oslo",
    text: `<think>\nOne town.\n</think>\n\n${weather("Oslo")}`,
    tokens_per_message: [1, 4, 2],
  },
  { contains: "both towns", text: CITIES.map(weather).join("\n"), tokens_per_message: [1, 2, 5, 1] },
  { contains: "say hi in Python", text: call("run_code", { input: CODE }), tokens_per_message: [1, 4] },
  { contains: "send a mail", text: call("mail__send", { to: "ann" }) },
  { contains: "say JSON", text: '{"city": "Oslo", "degrees": 4}' },
  { contains: "never ends", text: LONG, finish_reason: "length" },
  { contains: "count up", text: LONG, tokens_per_message: [1, 7, 3] },
  { contains: "refuse busy", fault: { kind: "status", code: "RESOURCE_EXHAUSTED", message: "the queue is full" } },
  { contains: "refuse", fault: { kind: "status", code: "INTERNAL", message: "boom" } },
  { contains: "fail midway", ...midway, fault: { kind: "status", code: "INTERNAL", message: "boom", after_tokens: 3 } },
  { contains: "cut midway", ...midway, fault: { kind: "reset", after_tokens: 3 } },
]);

export interface ResponsesServer {
  readonly engine: TestEngine;
  readonly gateway: TestGateway;
  readonly client: OpenAI;
  readonly model: string;
  stop(): Promise<void>;
}

export async function startResponses(): Promise<ResponsesServer> {
  const engine = await startEngine(SCRIPT, ["--speed", "0"]);
  const gateway = await startGateway([engine], ["--history-url", "memory:"]);
  const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: "none", maxRetries: 0 });
  return {
    engine,
    gateway,
    client,
    model: gateway.model,
    async stop() {
      await gateway.stop();
      await engine.stop();
    },
  };
}

/** What a promise is rejected with. */
export const failureOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    (value) => {
      throw new Error(`it has not failed: ${JSON.stringify(value)?.slice(0, 500)}`);
    },
    (error: unknown) => error,
  );
