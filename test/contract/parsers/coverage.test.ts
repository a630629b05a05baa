/** How many samples each family has: those of the files, and those from building blocks. */
import { describe, expect, test } from "bun:test";
import { TOOL_FAMILIES } from "../../../src/parsers/families/index.ts";
import { toolParserName } from "../../../src/parsers/names.ts";
import { REASONING_FAMILIES } from "../../../src/parsers/reasoning/index.ts";
import { CASES } from "./cases.ts";
import { SAMPLE_FILES, type Sample, samplesOf } from "./samples.ts";
import { THOUGHTS } from "./thoughts.ts";

const ALL: readonly Sample[] = [...SAMPLE_FILES.flatMap(samplesOf), ...CASES, ...THOUGHTS];

/** The six that are used most, by the parsers that read them: 60 samples each, all others 12. */
const MOST_USED: Readonly<Record<string, readonly string[]>> = {
  Llama: ["llama"],
  "Qwen and Hermes": ["qwen"],
  "Qwen Coder": ["qwen_xml"],
  DeepSeek: ["deepseek", "deepseek31", "deepseek32", "deepseek_v4"],
  Kimi: ["kimik2"],
  harmony: ["harmony"],
};

/** Different answers among the samples of these tool parsers. */
const inputsOf = (parsers: readonly string[]) =>
  new Set(ALL.filter(({ tool }) => parsers.includes(toolParserName(tool) ?? "")).map(({ input }) => input));

describe("different samples", () => {
  test.each(Object.entries(MOST_USED))("%s: 60", (_, parsers) => {
    expect(inputsOf(parsers).size).toBeGreaterThanOrEqual(60);
  });
  // Two names of one program share their samples.
  const programs = Map.groupBy(Object.keys(TOOL_FAMILIES), (name) => TOOL_FAMILIES[name]);
  test.each([...programs.values()].map((names) => [names.join(", "), names] as const))(
    "calls of %s: 12",
    (_, names) => {
      expect(inputsOf(names).size).toBeGreaterThanOrEqual(12);
    },
  );
  test.each(Object.keys(REASONING_FAMILIES))("reasoning of %s: 12", (name) => {
    const inputs = ALL.filter(({ reasoning, tool }) => reasoning === name && tool === undefined).map(
      ({ input }) => input,
    );
    expect(new Set(inputs).size).toBeGreaterThanOrEqual(12);
  });
});

test("harmony has 40 samples that openai-harmony took apart", () => {
  expect(samplesOf("harmony-samples.jsonl").length).toBeGreaterThanOrEqual(40);
});
