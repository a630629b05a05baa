/** What the tests of Interactions ask, and how the engine answers it: with Qwen 3's template and parsers. */
import { startEngine, startGateway, type TestEngine, type TestGateway } from "./processes.ts";

export { failureOf } from "./responses.ts";

export const HELLO = "naïve 👩‍👩‍👧 日本 done";
export const THOUGHT = "hm hm";
export const YES = "Yes.";
export const LONG = Array.from({ length: 1500 }, (_, i) => `word${i}`).join(" ");
export const CITIES = ["Oslo", "Łódź"];
export const BOTH = "Both have 4 degrees.";
/** The answer where the model was told again what it had thought. */
export const REMEMBERED = "As I thought, 4 degrees.";

const call = (city: string) =>
  `<tool_call>\n{"name": "get_weather", "arguments": {"city": ${JSON.stringify(city)}}}\n</tool_call>`;
/** A result that came as an object, and one that came as its text. */
const RESULTS = [", ", ","].map(
  (comma) => (city: string) =>
    `<tool_response>\n{"city":${comma.slice(1)}${JSON.stringify(city)}${comma}"degrees":${comma.slice(1)}4}\n</tool_response>`,
);
const midway = { text: "alpha beta gamma delta epsilon", ms_per_token: 20, finish_reason: "stop" };
const slow = Array.from({ length: 30 }, (_, i) => `step${i}`).join(" ");

const SCRIPT = JSON.stringify([
  ...RESULTS.map((result) => ({
    contains: `<think>\nOne town.\n</think>\n\n${call("Oslo")}<|im_end|>\n<|im_start|>user\n${result("Oslo")}`,
    text: REMEMBERED,
  })),
  ...RESULTS.map((result) => ({ contains: CITIES.map(result).join("\n"), text: BOTH, tokens_per_message: [1, 3, 2] })),
  { contains: "what was my name", text: "Ann." },
  { contains: "my name is Ann", text: "Hello, Ann." },
  { contains: "say hello", text: HELLO, tokens_per_message: [1, 3, 2, 1] },
  { contains: "think first", text: `<think>\n${THOUGHT}\n</think>\n\n${YES}`, tokens_per_message: [1, 2] },
  {
    contains: "weather of Oslo",
    text: `<think>\nOne town.\n</think>\n\n${call("Oslo")}`,
    tokens_per_message: [1, 4, 2],
  },
  { contains: "both towns", text: CITIES.map(call).join("\n"), tokens_per_message: [1, 2, 5, 1] },
  { contains: "say JSON", text: '{"city": "Oslo", "degrees": 4}' },
  { contains: "take your time", text: slow, ms_per_token: 20 },
  { contains: "count up", text: LONG, tokens_per_message: [1, 7, 3] },
  { contains: "refuse busy", fault: { kind: "status", code: "RESOURCE_EXHAUSTED", message: "the queue is full" } },
  { contains: "refuse", fault: { kind: "status", code: "INTERNAL", message: "boom" } },
  { contains: "fail midway", ...midway, fault: { kind: "status", code: "INTERNAL", message: "boom", after_tokens: 3 } },
  { contains: "cut midway", ...midway, fault: { kind: "reset", after_tokens: 3 } },
]);
/** What the engine says to "take your time". */
export const SLOW = slow;

export interface InteractionsServer {
  readonly engine: TestEngine;
  readonly gateway: TestGateway;
  readonly model: string;
  stop(): Promise<void>;
}

export async function startInteractions(args: readonly string[] = []): Promise<InteractionsServer> {
  const engine = await startEngine(SCRIPT, ["--speed", "0"]);
  const gateway = await startGateway([engine], ["--history-url", "memory:", ...args]);
  return {
    engine,
    gateway,
    model: gateway.model,
    async stop() {
      await gateway.stop();
      await engine.stop();
    },
  };
}
