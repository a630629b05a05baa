/** An engine that follows a script and a gateway before it, and what the tests of several clients ask of them. */
import { startEngine, startGateway, type TestEngine, type TestGateway } from "./processes.ts";

export const HELLO = "naïve 👩‍👩‍👧 日本 done";
export const THOUGHT = "hm hm";
export const YES = "Yes.";
export const LONG = Array.from({ length: 1500 }, (_, i) => `word${i}`).join(" ");
export const CITIES = ["Oslo", "Łódź"];
export const BOTH = "Both have 4 degrees.";
export const ONE = "Oslo has 4 degrees.";
export const degrees = (city: string): string => JSON.stringify({ city, degrees: 4 });

/** A call as Qwen 3 writes it, without blanks. */
export const call = (name: string, args: unknown): string =>
  `<tool_call>\n${JSON.stringify({ name, arguments: args })}\n</tool_call>`;
export const weather = (city: string): string => call("get_weather", { city });
/** A result as Qwen 3's template shows it. */
export const result = (text: string): string => `<tool_response>\n${text}\n</tool_response>`;

const midway = { text: "alpha beta gamma delta epsilon", ms_per_token: 20, finish_reason: "stop" };
/** What each script ends with: the first entry that fits counts. */
const COMMON: readonly object[] = [
  { contains: "say hello", text: HELLO, tokens_per_message: [1, 3, 2, 1] },
  { contains: "think first", text: `<think>\n${THOUGHT}\n</think>\n\n${YES}`, tokens_per_message: [1, 2] },
  { contains: "say JSON", text: '{"city": "Oslo", "degrees": 4}' },
  { contains: "count up", text: LONG, tokens_per_message: [1, 7, 3] },
  { contains: "refuse busy", fault: { kind: "status", code: "RESOURCE_EXHAUSTED", message: "the queue is full" } },
  { contains: "refuse", fault: { kind: "status", code: "INTERNAL", message: "boom" } },
  { contains: "fail midway", ...midway, fault: { kind: "status", code: "INTERNAL", message: "boom", after_tokens: 3 } },
  { contains: "cut midway", ...midway, fault: { kind: "reset", after_tokens: 3 } },
];

export interface ScriptedServer {
  readonly engine: TestEngine;
  readonly gateway: TestGateway;
  readonly model: string;
  stop(): Promise<void>;
}

/** `script`: answers that come before those of all. `args`: of the gateway. */
export async function startScripted(
  script: readonly object[],
  args: readonly string[] = ["--history-url", "memory:"],
): Promise<ScriptedServer> {
  const engine = await startEngine(JSON.stringify([...script, ...COMMON]), ["--speed", "0"]);
  const gateway = await startGateway([engine], args);
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

/** What a promise is rejected with. */
export const failureOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    (value) => {
      throw new Error(`it has not failed: ${JSON.stringify(value)?.slice(0, 500)}`);
    },
    (error: unknown) => error,
  );
