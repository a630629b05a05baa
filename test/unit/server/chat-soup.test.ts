/** Answers made of markers, calls, and text at random: whole or streamed, with details or not, they are the same. */
import { afterAll, expect, test } from "bun:test";
import { random } from "../generation/random.ts";
import { askAllWays, CODE, OSLO, play, qwenGateway, WEATHER, written } from "./tool-chat.ts";

const PIECES = [
  "<think>",
  "</think>",
  "<tool_call>",
  "</tool_call>",
  "\n",
  "\n\n",
  " ",
  "Text. ",
  "日本 👩‍👩‍👧",
  OSLO,
  OSLO.slice(0, 40),
  written("run_code", { input: 'a "b"' }),
  '{"name": "get_weather", "arguments": ',
  '{"city": "x"}',
  "}",
  '"',
  "<tool",
  "<function=get_weather>\n",
  "<parameter=city>\n",
  "\n</parameter>",
  "</function>",
  "END",
  "<|endoftext|>",
];
const ROUNDS = 60;

test.each([
  ["qwen", "qwen3"],
  ["qwen3_coder", "qwen3_thinking"],
  ["llama3_json", undefined],
  ["mistral", "mistral"],
  ["pythonic", undefined],
])(
  "%s, %p",
  async (tool, reasoning) => {
    const { below, pick } = random(7);
    let answers: string[] = [];
    let reason: "stop" | "length" = "stop";
    const gateway = qwenGateway((call) => play(answers, call, { size: 1 + below(9), reason }), {
      parsers: { tool, reasoning },
    });
    afterAll(() => gateway.stop());
    for (let round = 0; round < ROUNDS; round++) {
      const n = 1 + below(2);
      reason = below(4) === 0 ? "length" : "stop";
      answers = Array.from({ length: n }, () => Array.from({ length: below(9) }, () => pick(PIECES)).join(""));
      const body = {
        n,
        tools: [WEATHER, CODE],
        parallel_tool_calls: below(3) > 0,
        ...(below(3) === 0 && { stop: ["END", "x"] }),
        ...(below(5) === 0 && { tool_choice: "none" }),
      };
      const { choices } = await askAllWays(gateway, body).catch((cause: unknown) => {
        throw new Error(`round ${round}: ${JSON.stringify(answers)} ${JSON.stringify(body)}`, { cause });
      });
      expect(choices).toHaveLength(n);
    }
  },
  60_000,
);
