import type { ThinkingFamily } from "./thinking.ts";

/** A format of reasoning between markers. */
export interface ReasoningFamily extends ThinkingFamily {
  /** How an answer begins when no rendered prompt tells; `toggle`: as the request's thinking switch says. */
  readonly starts: "text" | "reasoning" | "toggle";
  /** Markers that may be single tokens, where they are not those of the table. */
  readonly tokens?: readonly string[];
}

const THINK = { open: ["<think>"], close: ["</think>"] } as const;
const KIMI_SECTIONS = {
  endedBy: [
    { marker: "<|tool_calls_section_begin|>" },
    { marker: "<|tool_call_section_begin|>" },
    { marker: "<|tool_call_begin|>" },
  ],
} as const;
/** Calls of Qwen and those alike: an object or a function tag follows, so that a mention in a thought does not end it. */
const TOOL_CALL = { endedBy: [{ marker: "<tool_call>", next: ["{", "<function="] }] } as const;

const DEEPSEEK_CALLS = {
  endedBy: [
    { marker: "<｜tool▁calls▁begin｜>" },
    { marker: "<｜DSML｜function_calls>" },
    { marker: "<｜DSML｜tool_calls>" },
  ],
  tokens: ["<think>", "</think>", "<｜tool▁calls▁begin｜>", "<｜DSML｜", "｜DSML｜"],
} as const;

/** A tag of Kimi K3, whose words may have space around them. */
const k3Tags = (opener: string, ...names: string[]): string[] =>
  names.flatMap((name) => [name, ` ${name}`, `${name} `, ` ${name} `]).map((name) => `${opener}${name}<|sep|>`);

/** Reasoning parsers by name; harmony and inkling, which carry calls in the same format, are among the tool families. */
export const REASONING_FAMILIES: Readonly<Record<string, ReasoningFamily>> = {
  base: { ...THINK, starts: "text" },
  deepseek_r1: { ...THINK, ...DEEPSEEK_CALLS, starts: "reasoning" },
  deepseek_v31: { ...THINK, ...DEEPSEEK_CALLS, starts: "toggle" },
  qwen3: { ...THINK, ...TOOL_CALL, starts: "toggle" },
  qwen3_thinking: { ...THINK, ...TOOL_CALL, starts: "reasoning" },
  kimi: { open: ["◁think▷"], close: ["◁/think▷"], starts: "text" },
  kimi_k2: { ...THINK, ...KIMI_SECTIONS, starts: "text" },
  kimi_k25: { ...THINK, ...KIMI_SECTIONS, starts: "toggle" },
  kimi_thinking: { ...THINK, ...KIMI_SECTIONS, starts: "reasoning" },
  kimi_k3: {
    open: k3Tags("<|open|>", "think"),
    close: k3Tags("<|close|>", "think"),
    drop: k3Tags("<|open|>", "response", "message"),
    textClosers: k3Tags("<|close|>", "response", "message"),
    endedBy: [
      ...k3Tags("<|open|>", "tools").map((marker) => ({ marker })),
      ...k3Tags("<|open|>", "response").map((marker) => ({ marker, drop: true })),
    ],
    tokens: ["<|open|>", "<|close|>", "<|sep|>"],
    starts: "toggle",
  },
  glm45: { ...THINK, starts: "text" },
  step3: { ...THINK, endedBy: [{ marker: "<｜tool_calls_begin｜>" }], starts: "reasoning" },
  minimax: { ...THINK, endedBy: [{ marker: "<minimax:tool_call>" }], starts: "reasoning" },
  cohere_cmd: {
    open: ["<|START_THINKING|>"],
    close: ["<|END_THINKING|>"],
    drop: ["<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>"],
    starts: "text",
  },
  nano_v3: {
    ...THINK,
    endedBy: [...TOOL_CALL.endedBy, { marker: "<TOOLCALL>", next: ["["] }],
    starts: "toggle",
  },
  mistral: { open: ["[THINK]"], close: ["[/THINK]"], endedBy: [{ marker: "[TOOL_CALLS]" }], starts: "text" },
  gemma4: {
    open: ["<|channel>thought\n", "<|channel>thought"],
    close: ["<channel|>"],
    endedBy: [{ marker: "<|tool_call>" }],
    tokens: ["<|channel>", "<channel|>", "<|tool_call>"],
    starts: "text",
  },
  granite: {
    open: ["Here is my thought process:", "Here's my thought process:"],
    close: ["Here is my response:", "Here's my response:"],
    onlyAtStart: true,
    tokens: [],
    starts: "text",
  },
  hunyuan_a13b: {
    open: ["<think>\n", "<think>"],
    close: ["\n</think>\n<answer>\n", "</think>\n<answer>\n", "\n</think>\n<answer>", "\n</think>", "</think>"],
    drop: ["<answer>\n", "<answer>", "\n</answer>", "</answer>"],
    tokens: ["<think>", "</think>", "<answer>", "</answer>"],
    starts: "text",
  },
  seed_oss: {
    open: ["<seed:think>"],
    close: ["</seed:think>"],
    endedBy: [{ marker: "<seed:tool_call>", next: ["<function="] }],
    starts: "text",
  },
  ernie45: {
    ...THINK,
    ...TOOL_CALL,
    drop: ["<response>\n", "<response>", "\n</response>", "</response>"],
    tokens: ["<think>", "</think>", "<tool_call>", "<response>", "</response>"],
    starts: "reasoning",
  },
  olmo3: { ...THINK, starts: "reasoning" },
  exaone4: { ...THINK, ...TOOL_CALL, starts: "toggle" },
  minimax_m3: {
    open: ["<mm:think>"],
    close: ["</mm:think>"],
    endedBy: [{ marker: "]<]minimax[>[<tool_call>" }],
    tokens: ["<mm:think>", "</mm:think>", "]<]minimax[>[", "<tool_call>"],
    starts: "text",
  },
  hy_v3: {
    open: ["<think>", "<think:opensource>"],
    close: ["</think>", "</think:opensource>"],
    endedBy: [{ marker: "<tool_calls>" }, { marker: "<tool_calls:opensource>" }],
    starts: "toggle",
  },
  solar_open2: {
    open: ["<|think:start|>"],
    close: ["<|think:end|>"],
    endedBy: [{ marker: "<|tool_call:start|>" }],
    starts: "toggle",
  },
  gigachat35: {
    ...THINK,
    endedBy: [{ marker: "<｜GCML｜tool_calls>" }],
    tokens: ["<think>", "</think>", "<｜GCML｜", "｜GCML｜"],
    starts: "toggle",
  },
  apertus: {
    open: ["<|inner_prefix|>"],
    close: ["<|inner_suffix|>"],
    endedBy: [{ marker: "<|tools_prefix|>" }],
    starts: "text",
  },
  plamo3: {
    open: ["<|plamo:begin_think:plamo|>"],
    close: ["<|plamo:end_think:plamo|>"],
    endedBy: [{ marker: "<|plamo:begin_tool_requests:plamo|>" }],
    tokens: ["<|plamo:begin_", "<|plamo:end_", ":plamo|>"],
    starts: "toggle",
  },
};

/** Every marker of a family that may be one token. */
export function reasoningMarkers(family: ReasoningFamily): readonly string[] {
  const { open, close, drop = [], endedBy = [], tokens } = family;
  return tokens ?? [...open, ...close, ...drop, ...endedBy.map(({ marker }) => marker)];
}
