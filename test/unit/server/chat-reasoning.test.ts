/** Where an answer begins in its reasoning, and reasoning that stays in the content, over HTTP. */
import { afterEach, describe, expect, test } from "bun:test";
import type { Gateway } from "./gateway.ts";
import { askAllWays, OSLO, play, qwenGateway, WEATHER, written } from "./tool-chat.ts";

let gateway: Gateway;
afterEach(() => gateway?.stop());

const asked = async (text: string, parsers: { tool: string | undefined; reasoning: string }, body: object) => {
  await gateway?.stop();
  gateway = qwenGateway((call) => play([text], call), { parsers });
  const { choices, usage } = await askAllWays(gateway, body);
  const { content, reasoning_content: reasoning, tool_calls: calls } = choices[0]!.message;
  return { content, reasoning, calls: calls?.length ?? 0, counted: usage.completion_tokens_details.reasoning_tokens };
};

describe("models that always reason, and leave the opener out", () => {
  const R1 = { tool: undefined, reasoning: "deepseek_r1" };

  test("what comes before the closer is reasoning", async () => {
    const found = await asked("Hm, hm.\n</think>\n\nYes.", R1, { tools: undefined });
    expect(found).toMatchObject({ content: "\n\nYes.", reasoning: "Hm, hm.\n" });
    expect(found.counted).toBeGreaterThan(2);
    expect(await asked("Cut in a tho", R1, { tools: undefined })).toMatchObject({ reasoning: "Cut in a tho" });
  });

  test("the opener may be there", async () => {
    const found = await asked("<think>\nHm.\n</think>\n\nYes.", R1, { tools: undefined });
    expect(found).toMatchObject({ content: "\n\nYes.", reasoning: "\nHm.\n" });
  });

  test("a prompt that closes the block tells that there is none", async () => {
    const quiet = { tools: undefined, chat_template_kwargs: { enable_thinking: false } };
    expect(await asked("Yes.", R1, quiet)).toMatchObject({ content: "Yes.", reasoning: undefined, counted: 0 });
  });

  test("Qwen 3 that does not think answers", async () => {
    const qwen = { tool: "hermes", reasoning: "qwen3" };
    expect(await asked("Yes.", qwen, {})).toMatchObject({ content: "Yes.", reasoning: undefined, counted: 0 });
  });
});

describe("reasoning that stays in the content", () => {
  const QWEN = { tool: "hermes", reasoning: "qwen3" };
  const THOUGHT = "<think>\nThe user wants the weather.\n</think>\n\n";

  test.each([0, 1])("is counted, and told byte for byte, with %d tools", async (count) => {
    const tools = count === 0 ? undefined : [WEATHER];
    const apart = await asked(`${THOUGHT}Fine.`, QWEN, { tools });
    const merged = await asked(`${THOUGHT}Fine.`, QWEN, { tools, separate_reasoning: false });
    expect(merged).toEqual({ content: `${THOUGHT}Fine.`, reasoning: undefined, calls: 0, counted: apart.counted });
    expect(merged.counted).toBeGreaterThan(5);
  });

  test("a call in a thought is none, one behind it is", async () => {
    const thought = `<think>I could ${written("f", {}).slice(12)}</think>`;
    const merged = await asked(`${thought}${OSLO}`, QWEN, { separate_reasoning: false });
    expect(merged).toMatchObject({ content: thought, calls: 1 });
  });

  test("a bare call behind it is found", async () => {
    const llama = { tool: "llama", reasoning: "base" };
    const text = '<think>Hm.</think>{"name": "get_weather", "parameters": {"city": "Oslo"}}';
    const merged = await asked(text, llama, { separate_reasoning: false });
    expect(merged).toMatchObject({ content: "<think>Hm.</think>", calls: 1 });
  });

  test("an answer that begins in it has no opener", async () => {
    const merged = await asked(
      "Hm.</think>Yes.",
      { tool: undefined, reasoning: "deepseek_r1" },
      {
        tools: undefined,
        separate_reasoning: false,
      },
    );
    expect(merged).toMatchObject({ content: "Hm.</think>Yes.", reasoning: undefined });
    expect(merged.counted).toBeGreaterThan(0);
  });
});
