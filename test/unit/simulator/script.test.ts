import { expect, test } from "bun:test";
import { parseScript, ScriptError } from "../../../src/simulator/script/load.ts";
import { matches } from "../../../src/simulator/script/rule.ts";

test("a rule's members", () => {
  const [rule, bare] = parseScript(`
rules:
  - matches: "^a.c$"
    text: hi
    tokens_per_message: 3
    finish_reason: length
    logprobs: [-1, -0.5]
    delay_ms: 5
    ms_per_token: 2.5
    times: 2
    fault: { kind: reset, after_tokens: 4, code: REFUSED_STREAM }
  - fault: hang
`);
  expect(rule).toMatchObject({
    text: "hi",
    tokenIds: undefined,
    chunkSizes: [3],
    finishReason: "length",
    logprobs: [-1, -0.5],
    delayMs: 5,
    tokenIntervalMs: 2.5,
    times: 2,
    fault: { kind: "reset", afterTokens: 4, code: 7 },
  });
  expect(matches(rule!, "a\nc")).toBe(true);
  expect(matches(rule!, "xabc")).toBe(false);
  expect(bare).toMatchObject({ fault: { kind: "hang" }, chunkSizes: [], times: Number.POSITIVE_INFINITY });
  expect(matches(bare!, "anything")).toBe(true);
});

test("what is wrong is named by its key", () => {
  const problems: [string, string][] = [
    ["a: [", "is not YAML"],
    ["text: hi", "rules: must be a list"],
    ["- 3", "rules[0]: must be a mapping"],
    ["- {text: hi}\n- {txt: hi}", "rules[1].txt: is not known; keys are contains"],
    ["- {text: hi, token_ids: [1]}", "rules[0]: has both text and token_ids"],
    ["- {contains: a, matches: b}", "rules[0]: has both contains and matches"],
    ['- {matches: "("}', "rules[0].matches:"],
    ["- {token_ids: [1, -2]}", "rules[0].token_ids: must be a list of token ids"],
    ["- {tokens_per_message: 0}", "rules[0].tokens_per_message:"],
    ["- {tokens_per_message: []}", "rules[0].tokens_per_message:"],
    ["- {delay_ms: soon}", "rules[0].delay_ms: must be a number of milliseconds"],
    ["- {times: 0}", "rules[0].times:"],
    ["- {fault: explode}", "rules[0].fault.kind: must be hang, exit"],
    ["- {fault: {kind: status, code: NOPE}}", "rules[0].fault.code: must be a number or one of OK, CANCELLED"],
    ["- {fault: {kind: reset, after: 3}}", "rules[0].fault.after: is not known"],
    ["- {fault: {kind: disconnect, after_tokens: -1}}", "rules[0].fault.after_tokens: must be a whole number"],
  ];
  for (const [yaml, message] of problems) {
    let error: unknown;
    try {
      parseScript(yaml);
    } catch (caught) {
      error = caught;
    }
    expect(error).toBeInstanceOf(ScriptError);
    expect((error as Error).message).toContain(message);
  }
});
