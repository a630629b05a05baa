import { describe, expect, test } from "bun:test";
import { echoContent, fixedContent } from "../../../src/simulator/output/answer.ts";
import { logprobRow } from "../../../src/simulator/output/logprobs.ts";
import { type PlanInput, planOutput } from "../../../src/simulator/output/plan.ts";
import { regexText } from "../../../src/simulator/output/regex-text.ts";
import { defaultSampling, type Sampling } from "../../../src/simulator/sampling.ts";

const EOS = 99;
const OTHER_EOS = 98;

function plan(ids: number[], sampling: Partial<Sampling> = {}, rest: Partial<PlanInput> = {}) {
  const {
    idAt,
    length,
    endsWithStop: _ends,
    ...end
  } = planOutput({
    content: fixedContent(ids),
    sampling: { ...defaultSampling(), ...sampling },
    limit: 100,
    eosTokenIds: [EOS],
    otherEosTokenIds: [OTHER_EOS],
    namesEos: false,
    tokenizer: undefined,
    ...rest,
  });
  return { ids: Array.from({ length }, (_, i) => idAt(i)), ...end };
}

describe("planned outputs", () => {
  test("end with EOS, or at the limit", () => {
    expect(plan([1, 2])).toEqual({ ids: [1, 2, EOS], finishReason: "stop" });
    expect(plan([1, 2], {}, { limit: 3 })).toEqual({ ids: [1, 2, EOS], finishReason: "stop" });
    expect(plan([1, 2], {}, { limit: 2 })).toEqual({ ids: [1, 2], finishReason: "length" });
  });

  test("go on over their end with ignore_eos or min_tokens", () => {
    expect(plan([1, 2], { ignoreEos: true }, { limit: 5 })).toEqual({ ids: [1, 2, 1, 2, 1], finishReason: "length" });
    expect(plan([1, 2], { minTokens: 4 })).toEqual({ ids: [1, 2, 1, 2, EOS], finishReason: "stop" });
  });

  test("stop at an EOS inside, and tell one of generation_config.json apart", () => {
    expect(plan([1, EOS, 2])).toEqual({ ids: [1, EOS], finishReason: "stop" });
    expect(plan([1, OTHER_EOS, 2])).toEqual({ ids: [1, OTHER_EOS], finishReason: "stop", matchedTokenId: OTHER_EOS });
    expect(plan([1, OTHER_EOS, 2], { ignoreEos: true }, { limit: 4 }).ids).toEqual([1, OTHER_EOS, 2, 1]);
  });

  test("stop ids stop, but not before min_tokens; an EOS among them is no match", () => {
    expect(plan([1, 2, 3], { stopTokenIds: [2, EOS] })).toEqual({
      ids: [1, 2],
      finishReason: "stop",
      matchedTokenId: 2,
    });
    expect(plan([1, 2, 3], { stopTokenIds: [2], minTokens: 2 }).ids).toEqual([1, 2, 3, EOS]);
    expect(plan([1], { stopTokenIds: [EOS] })).toEqual({ ids: [1, EOS], finishReason: "stop" });
  });

  test("a scripted finish reason adds no EOS, and gives way to a limit or a stop", () => {
    expect(plan([1, 2], {}, { finishReason: "abort" })).toEqual({ ids: [1, 2], finishReason: "abort" });
    expect(plan([1, 2, 3], {}, { finishReason: "abort", limit: 2 })).toEqual({ ids: [1, 2], finishReason: "length" });
  });

  test("a strong bias forces its token", () => {
    expect(plan([1, 2], { logitBias: [[7, 100]] }, { limit: 3 })).toEqual({ ids: [7, 7, 7], finishReason: "length" });
    expect(plan([1, 2], { logitBias: [[7, 5]] }).ids).toEqual([1, 2, EOS]);
  });

  test("an echo has no end of its own", () => {
    const echo = plan([], {}, { content: echoContent(Uint32Array.of(5, 6, 7), new Set([6])), limit: 5 });
    expect(echo).toEqual({ ids: [5, 7, 5, 7, 5], finishReason: "length" });
  });
});

describe("logprobs", () => {
  test("are repeatable, below 0, distinct and as many as asked for; greedy tokens are the likeliest", () => {
    for (let id = 0; id < 200; id++) {
      const row = logprobRow(id, id * 3, 20, true, 1000);
      expect(row).toEqual(logprobRow(id, id * 3, 20, true, 1000));
      expect(row.topIds[0]).toBe(id);
      expect(new Set(row.topIds).size).toBe(20);
      expect(Math.max(...row.topLogprobs)).toBe(row.logprob);
      expect(row.logprob).toBeLessThan(0);
    }
  });

  test("a sampled token is sometimes not the likeliest, and still comes first", () => {
    const rows = Array.from({ length: 200 }, (_, i) => logprobRow(i, i, 3, false, 1000));
    const surprises = rows.filter((row) => row.topLogprobs[1]! > row.topLogprobs[0]!);
    expect(surprises.length).toBeGreaterThan(10);
    expect(surprises.length).toBeLessThan(100);
  });
});

test("texts for regular expressions match them", () => {
  for (const pattern of [
    "",
    "abc",
    "^a|b$",
    "(red|green) [0-9]{3}",
    "\\d{4}-\\d{2}",
    "[^a]+x?",
    "(?:ab){2,3}[\\]]",
    "a.c\\.",
    "(a\\-b\\/c|d)",
  ])
    expect(regexText(pattern)).toMatch(new RegExp(`^(?:${pattern})$`));
  expect(regexText("(?=a)b")).toBeUndefined();
  expect(regexText("(unclosed")).toBeUndefined();
});
