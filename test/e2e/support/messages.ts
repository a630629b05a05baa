/** What the tests of Messages ask, and how the engine answers it: with Qwen 3's template and parsers. */
import Anthropic from "@anthropic-ai/sdk";
import { startEngine, startGateway, type TestEngine, type TestGateway } from "./processes.ts";

export const HELLO = "naïve 👩‍👩‍👧 日本 done";
export const THOUGHT = "hm hm";
export const YES = "Yes.";
export const LONG = Array.from({ length: 1500 }, (_, i) => `word${i}`).join(" ");
export const CITIES = ["Oslo", "Łódź"];
export const BOTH = "Both have 4 degrees.";
export const ONE = "Oslo has 4 degrees.";
export const degrees = (city: string): string => JSON.stringify({ city, degrees: 4 });

const call = (name: string, args: unknown) => `<tool_call>\n${JSON.stringify({ name, arguments: args })}\n</tool_call>`;
const weather = (city: string) => call("get_weather", { city });
const result = (text: string) => `<tool_response>\n${text}\n</tool_response>`;
const midway = { text: "alpha beta gamma delta epsilon", ms_per_token: 20, finish_reason: "stop" };
const thought = `<think>\n${THOUGHT}\n</think>\n\n`;
const AGAIN = `${thought}<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call><|im_end|>`;

const SCRIPT = JSON.stringify([
  { contains: CITIES.map((city) => result(degrees(city))).join("\n"), text: BOTH, tokens_per_message: [1, 3, 2] },
  // the thoughts of the turn before are in the prompt again, as the model wrote them
  { contains: AGAIN, text: `${ONE} I thought so.` },
  { contains: result(degrees("Oslo")), text: ONE },
  { contains: "say hello", text: HELLO, tokens_per_message: [1, 3, 2, 1] },
  { contains: "think first", text: `${thought}${YES}`, tokens_per_message: [1, 2] },
  { contains: "think of Oslo", text: `${thought}${weather("Oslo")}`, tokens_per_message: [1, 4, 2] },
  { contains: "weather of Oslo", text: weather("Oslo"), tokens_per_message: [1, 4, 2] },
  { contains: "both towns", text: `I look.\n${CITIES.map(weather).join("\n")}`, tokens_per_message: [1, 2, 5, 1] },
  { contains: "say JSON", text: '{"city": "Oslo", "degrees": 4}' },
  { contains: "count up", text: LONG, tokens_per_message: [1, 7, 3] },
  { contains: "slowly", text: YES, delay_ms: 3000 },
  { contains: "hold on", text: YES, delay_ms: 60_000 },
  { contains: "refuse busy", fault: { kind: "status", code: "RESOURCE_EXHAUSTED", message: "the queue is full" } },
  { contains: "refuse", fault: { kind: "status", code: "INTERNAL", message: "boom" } },
  { contains: "fail midway", ...midway, fault: { kind: "status", code: "INTERNAL", message: "boom", after_tokens: 3 } },
  { contains: "cut midway", ...midway, fault: { kind: "reset", after_tokens: 3 } },
]);

export interface MessagesServer {
  readonly engine: TestEngine;
  readonly gateway: TestGateway;
  readonly client: Anthropic;
  readonly model: string;
  stop(): Promise<void>;
}

/** `args`: of the gateway. */
export async function startMessages(args: readonly string[] = ["--history-url", "memory:"]): Promise<MessagesServer> {
  const engine = await startEngine(SCRIPT, ["--speed", "0"]);
  const gateway = await startGateway([engine], args);
  return {
    engine,
    gateway,
    client: new Anthropic({ baseURL: gateway.url, apiKey: "none", maxRetries: 0 }),
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
