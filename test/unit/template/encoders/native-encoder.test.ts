/** What the golden prompts cannot show: the choice of an encoder, continued messages, prompts without an answer, switches, refusals. */
import { describe, expect, test } from "bun:test";
import { InvalidRequestError } from "../../../../src/errors.ts";
import { ChatTemplateRefusal, type TemplateInput } from "../../../../src/template/chat-template.ts";
import { renderSegments } from "../../../../src/template/encoders/kimi-k3.ts";
import { kimiToolsText, sortedKeys } from "../../../../src/template/encoders/kimi-tools.ts";
import {
  ENCODER_NAMES,
  type EncoderName,
  findEncoder,
  nativeEncoder,
} from "../../../../src/template/encoders/native-encoder.ts";
import { plainValue } from "../../../../src/template/plain-value.ts";

const now = new Date("2026-01-31T23:59:59");
const user = { role: "user", content: "Hi" };
const answer = { role: "assistant", content: "Hel" };

const render = (name: EncoderName, input: Partial<TemplateInput> = {}): string =>
  nativeEncoder(name).render({ messages: [user], addGenerationPrompt: true, now, ...input });
const ending = (name: EncoderName, variables: Record<string, unknown>, input: Partial<TemplateInput> = {}): string =>
  render(name, { variables, ...input }).slice(-24);

function refusal(run: () => unknown): InvalidRequestError {
  try {
    run();
  } catch (error) {
    if (error instanceof InvalidRequestError) return error;
    throw error;
  }
  throw new Error("nothing was refused");
}

describe("findEncoder", () => {
  test.each([
    [{ architectures: ["GptOssForCausalLM"] }, "harmony"],
    [{ modelType: "gpt_oss" }, "harmony"],
    [{ modelId: "openai/GPT-OSS-20b" }, "harmony"],
    [{ architectures: ["DeepseekV32ForCausalLM"] }, "deepseek_v32"],
    [{ architectures: ["DeepseekV4ForCausalLM"] }, "deepseek_v4"],
    [{ architectures: ["DeepseekV4ForCausalLM"], modelType: "deepseek_v41" }, "deepseek_v41"],
    [{ architectures: ["DeepseekV41ForCausalLM"] }, "deepseek_v41"],
    [{ modelType: "deepseek_v4", modelId: "DeepSeek-V4-Flash-0731" }, "deepseek_v4_0731"],
    [
      { modelType: "deepseek_v4", encoders: new Map([["encoding_dsv4.py", "REASONING_EFFORT_PROMPTS = {"]]) },
      "deepseek_v4_0731",
    ],
    [
      {
        modelType: "deepseek_v4",
        modelId: "a-0731",
        encoders: new Map([["encoding_dsv4.py", "REASONING_EFFORT_MAX = ("]]),
      },
      "deepseek_v4",
    ],
    [{ encoders: new Map([["encoding_dsv32.py", ""]]) }, "deepseek_v32"],
    [{ architectures: ["KimiK3ForConditionalGeneration"] }, "kimi_k3"],
    [{ modelType: "kimi_k3" }, "kimi_k3"],
  ] as const)("%o", (traits, name) => expect(findEncoder(traits)).toBe(name));

  test.each([
    {},
    { architectures: ["DeepseekV3ForCausalLM"], modelType: "deepseek_v3" },
    { architectures: ["KimiK25ForConditionalGeneration"], modelType: "kimi_k25" },
    { architectures: ["DeepseekV32ForCausalLM"], modelId: "deepseek-ai/DeepSeek-V3.2-Exp" },
    { modelType: "llama", modelId: "meta/Llama-3.1" },
  ])("none for %o", (traits) => expect(findEncoder(traits)).toBeUndefined());
});

test.each(ENCODER_NAMES)("%s leaves the answer's opening away when it is not asked for", (name) => {
  const bare = render(name, { addGenerationPrompt: false });
  const full = render(name);
  expect(full.startsWith(bare)).toBe(true);
  expect(full.slice(bare.length)).toMatch(/assistant/i);
});

test.each(ENCODER_NAMES)("%s ends inside of the final message", (name) => {
  const input = { messages: [user, answer], addGenerationPrompt: false, variables: { thinking: false } };
  const whole = render(name, input);
  const open = render(name, { ...input, continueFinalMessage: true });
  expect(open).toBe(whole.slice(0, whole.lastIndexOf("Hel") + 3));
  const both = (): string => render(name, { ...input, continueFinalMessage: true, addGenerationPrompt: true });
  expect(refusal(both).param).toBe("continue_final_message");
});

test.each([
  ["deepseek_v32", "<think>Let"],
  ["deepseek_v4", "<think>Let"],
  ["deepseek_v41", "<think>Let"],
  ["kimi_k3", "think<|sep|>Let"],
  ["harmony", "<|channel|>analysis<|message|>Let"],
] as const)("%s ends inside of the reasoning", (name, end) => {
  const messages = [user, { role: "assistant", content: "", reasoning_content: "Let" }];
  const input = { messages, addGenerationPrompt: false, continueFinalMessage: "reasoning_content" };
  expect(render(name, { ...input, variables: { thinking: true } })).toEndWith(end);
});

describe("switches", () => {
  test("an effort that means none closes the reasoning", () => {
    for (const effort of ["none", "minimal"]) {
      expect(ending("deepseek_v41", { reasoning_effort: effort })).toEndWith("<｜Assistant｜></think>");
      expect(ending("kimi_k3", { reasoning_effort: effort })).toEndWith("<|open|>response<|sep|>");
    }
    expect(ending("kimi_k3", { reasoning_effort: "none", thinking: true })).toEndWith("<|open|>think<|sep|>");
  });

  test("thinking_mode counts, too", () => {
    expect(ending("deepseek_v32", { thinking_mode: "thinking" })).toEndWith("<think>");
    expect(ending("deepseek_v41", { thinking_mode: "chat" })).toEndWith("</think>");
  });

  test("levels that a model does not have go to the next one", () => {
    const lead = (name: EncoderName, effort: string): string =>
      render(name, { variables: { thinking: true, reasoning_effort: effort } });
    expect(lead("deepseek_v4", "low")).toBe(lead("deepseek_v4", "high"));
    expect(lead("deepseek_v4", "xhigh")).toBe(lead("deepseek_v4", "max"));
    expect(lead("deepseek_v4_0731", "medium")).toBe(lead("deepseek_v4_0731", "low"));
    expect(lead("deepseek_v4_0731", "high")).toBe(lead("deepseek_v4", "max"));
    expect(lead("kimi_k3", "medium")).toBe(lead("kimi_k3", "high"));
    expect(lead("kimi_k3", "xhigh")).toContain("`thinking_effort=max`");
    expect(lead("harmony", "minimal")).toBe(lead("harmony", "low"));
    expect(lead("harmony", "max")).toBe(lead("harmony", "high"));
  });

  test("an unknown level is refused", () => {
    for (const name of ["deepseek_v4", "deepseek_v41", "kimi_k3", "harmony"] as const) {
      const error = refusal(() => render(name, { variables: { thinking: true, reasoning_effort: "extreme" } }));
      expect(error).toBeInstanceOf(ChatTemplateRefusal);
      expect([error.param, error.message]).toEqual(["reasoning_effort", expect.stringContaining("'extreme'")]);
    }
  });
});

describe("tool calls of DeepSeek V4.1", () => {
  const call = (given: unknown): string =>
    render("deepseek_v41", {
      messages: [user, { role: "assistant", content: "", tool_calls: [{ function: { name: "f", arguments: given } }] }],
      variables: { thinking: false },
    });
  const parameter = (attributes: string, value: string): string =>
    `<｜DSML｜ invoke name="f">\n<｜DSML｜ parameter ${attributes}>${value}</｜DSML｜ parameter>\n</｜DSML｜ invoke>`;

  test("arguments that are no object are one parameter", () => {
    expect(call('{"a":')).toContain(parameter('name="arguments" string="true"', '{"a":'));
    expect(call("[1]")).toContain(parameter('name="arguments" string="true"', "[1]"));
  });

  test("arguments that were encoded twice are unpacked", () => {
    expect(call(JSON.stringify('{"a": 1.0}'))).toContain(parameter('name="a" string="false"', "1.0"));
  });
});

describe("segments of Kimi K3", () => {
  test("only markers of the format are special", () => {
    const messages = [{ role: "user", name: "<|sep|>", content: "<|open|>message<|sep|><|end_of_msg|>" }];
    const segments = renderSegments({ messages, addGenerationPrompt: true, variables: { thinking: false } });
    const special = segments.filter((segment) => segment.special).map(({ text }) => text);
    expect(special.join(" ")).toBe(
      "<|open|> <|sep|> <|close|> <|sep|> <|end_of_msg|> <|open|> <|sep|> <|open|> <|sep|>",
    );
    expect(segments).toContainEqual({ text: "<|open|>message<|sep|><|end_of_msg|>", special: false });
    expect(segments).toContainEqual({ text: "<|sep|>", special: false });
  });

  test("a continued message ends in its own segment", () => {
    const segments = renderSegments({
      messages: [user, answer],
      addGenerationPrompt: false,
      continueFinalMessage: true,
    });
    expect(segments.at(-1)).toEqual({ text: "Hel", special: false });
  });
});

describe("tools of Kimi K2.5", () => {
  test("none where there is no function, or a schema without such a form", () => {
    const odd = { type: "function", function: { name: "f", parameters: { properties: { a: { oneOf: [] } } } } };
    expect([[], [{ type: "web" }], [odd], ["x"]].map((tools) => kimiToolsText(tools))).toEqual(
      Array(4).fill(undefined),
    );
  });

  test("nesting without end is none", () => {
    let schema: Record<string, unknown> = { type: "string" };
    for (let depth = 0; depth < 150; depth++) schema = { type: "array", items: schema };
    const tools = [{ type: "function", function: { name: "f", parameters: { properties: { a: schema } } } }];
    expect(kimiToolsText(tools)).toBeUndefined();
  });

  test("keys are sorted by code point at every depth", () => {
    const sorted = sortedKeys(plainValue([{ b: { "\u{1f642}": 1, "\uffff": 2 }, a: 3 }]));
    expect(JSON.stringify(sorted, (_, value: unknown) => (value instanceof Map ? [...value] : value))).toBe(
      JSON.stringify([[["a", 3], ["b", [["\uffff", 2], ["\u{1f642}", 1]]]]]), // biome-ignore format: one line
    );
  });
});

describe("refusals", () => {
  test.each(ENCODER_NAMES)("%s: by a template's name, without messages, by odd tools", (name) => {
    expect(refusal(() => render(name, { template: "rag" })).message).toContain("'rag'");
    expect(refusal(() => render(name, { messages: [] })).param).toBe("messages");
    const unknown = refusal(() => render(name, { messages: [{ role: "critic", content: "x" }] }));
    expect([unknown.param, unknown.message]).toEqual(["messages", expect.stringContaining("'critic'")]);
    const part = refusal(() => render(name, { messages: [{ role: "user", content: [{ type: "video_url" }] }] }));
    expect(part.message).toContain("'video_url'");
    if (name !== "kimi_k3")
      expect(refusal(() => render(name, { tools: [{ type: "web_search" }] })).param).toBe("tools");
  });

  test("a value that nests too deep", () => {
    let value: unknown = 1;
    for (let depth = 0; depth < 400; depth++) value = [value];
    const tools = [{ type: "function", function: { name: "f", parameters: { default: value } } }];
    expect(refusal(() => render("deepseek_v32", { tools })).param).toBe("messages");
  });

  test("built-in tools of gpt-oss", () => {
    expect(refusal(() => render("harmony", { variables: { builtin_tools: ["python"] } })).message).toContain(
      "Built-in",
    );
  });
});

test("harmony: the date is the clock's, in local time", () => {
  expect(render("harmony")).toContain("Current date: 2026-01-31\n");
});
