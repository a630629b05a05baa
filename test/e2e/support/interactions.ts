/** What the tests of Interactions ask, and how the engine answers it: with Qwen 3's template and parsers. */
import { BOTH, CITIES, type ScriptedServer, startScripted } from "./scripted.ts";

/** The answer where the model was told again what it had thought. */
export const REMEMBERED = "As I thought, 4 degrees.";

const call = (city: string) =>
  `<tool_call>\n{"name": "get_weather", "arguments": {"city": ${JSON.stringify(city)}}}\n</tool_call>`;
/** A result that came as an object, and one that came as its text. */
const RESULTS = [", ", ","].map(
  (comma) => (city: string) =>
    `<tool_response>\n{"city":${comma.slice(1)}${JSON.stringify(city)}${comma}"degrees":${comma.slice(1)}4}\n</tool_response>`,
);
const slow = Array.from({ length: 30 }, (_, i) => `step${i}`).join(" ");

const SCRIPT = [
  ...RESULTS.map((result) => ({
    contains: `<think>\nOne town.\n</think>\n\n${call("Oslo")}<|im_end|>\n<|im_start|>user\n${result("Oslo")}`,
    text: REMEMBERED,
  })),
  ...RESULTS.map((result) => ({ contains: CITIES.map(result).join("\n"), text: BOTH, tokens_per_message: [1, 3, 2] })),
  { contains: "what was my name", text: "Ann." },
  { contains: "my name is Ann", text: "Hello, Ann." },
  {
    contains: "weather of Oslo",
    text: `<think>\nOne town.\n</think>\n\n${call("Oslo")}`,
    tokens_per_message: [1, 4, 2],
  },
  { contains: "both towns", text: CITIES.map(call).join("\n"), tokens_per_message: [1, 2, 5, 1] },
  { contains: "take your time", text: slow, ms_per_token: 20 },
];
/** What the engine says to "take your time". */
export const SLOW = slow;

/** `args`: of the gateway. */
export const startInteractions = (args: readonly string[] = []): Promise<ScriptedServer> =>
  startScripted(SCRIPT, ["--history-url", "memory:", ...args]);
