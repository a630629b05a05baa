/** Samples of reasoning from building blocks: each family's markers around thoughts that are known to go wrong. */
import type { Sample } from "./samples.ts";

/** Opener, closer, and what the family's template puts around the answer. */
const FAMILIES: Readonly<Record<string, readonly [open: string, close: string, before?: string, after?: string]>> = {
  base: ["<think>", "</think>"],
  deepseek_r1: ["<think>", "</think>"],
  deepseek_v31: ["<think>", "</think>"],
  qwen3: ["<think>", "</think>"],
  qwen3_thinking: ["<think>", "</think>"],
  kimi: ["◁think▷", "◁/think▷"],
  kimi_k2: ["<think>", "</think>"],
  kimi_k25: ["<think>", "</think>"],
  kimi_thinking: ["<think>", "</think>"],
  glm45: ["<think>", "</think>"],
  step3: ["<think>", "</think>"],
  minimax: ["<think>", "</think>"],
  cohere_cmd: ["<|START_THINKING|>", "<|END_THINKING|>", "<|START_RESPONSE|>", "<|END_RESPONSE|>"],
  nano_v3: ["<think>", "</think>"],
  mistral: ["[THINK]", "[/THINK]"],
  gemma4: ["<|channel>thought\n", "<channel|>"],
  granite: ["Here is my thought process:", "Here is my response:"],
  hunyuan_a13b: ["<think>\n", "\n</think>\n<answer>\n", "", "\n</answer>"],
  seed_oss: ["<seed:think>", "</seed:think>"],
  ernie45: ["<think>", "</think>", "<response>\n", "\n</response>"],
  olmo3: ["<think>", "</think>"],
  exaone4: ["<think>", "</think>"],
  minimax_m3: ["<mm:think>", "</mm:think>"],
  hy_v3: ["<think:opensource>", "</think:opensource>"],
  solar_open2: ["<|think:start|>", "<|think:end|>"],
  gigachat35: ["<think>", "</think>"],
  apertus: ["<|inner_prefix|>", "<|inner_suffix|>"],
  plamo3: ["<|plamo:begin_think:plamo|>", "<|plamo:end_think:plamo|>"],
  kimi_k3: ["<|open|>think<|sep|>", "<|close|>think<|sep|>", "<|open|>response<|sep|>", "<|close|>response<|sep|>"],
  harmony: ["<|channel|>analysis<|message|>", "<|end|>", "<|start|>assistant<|channel|>final<|message|>", "<|return|>"],
  inkling: [
    "<|message_model|><|content_thinking|>",
    "<|end_message|>",
    "<|message_model|><|content_text|>",
    "<|end_message|>",
  ],
};

const THOUGHTS_TEXTS = ["plan", "a < b, </, <thin 東京 😀\n\n  x", 'say {"name": "ping"} [1]'];
const ANSWERS = ["Hello.", "1 < 2 & 東 😀 <b>"];

/** All samples of reasoning. */
export const THOUGHTS: readonly Sample[] = Object.entries(FAMILIES).flatMap(([family, marks]) => {
  const [open, close, before = "", after = ""] = marks;
  const samples: Sample[] = [];
  const add = (label: string, input: string, thoughts: string, content: string, startsInReasoning = false) =>
    samples.push({
      id: `${family}: ${label}`,
      reasoning: family,
      input,
      startsInReasoning,
      content,
      thoughts,
      calls: [],
      chunks: undefined,
    });
  THOUGHTS_TEXTS.forEach((thought, t) => {
    ANSWERS.forEach((answer, a) => {
      const visible = before + answer + after;
      add(`${t}${a} closed`, open + thought + close + visible, thought, answer);
      add(`${t}${a} begun by the prompt`, thought + close + visible, thought, answer, true);
    });
    add(`${t} cut`, open + thought, thought, "");
    add(`${t} begun by the prompt, cut`, thought, thought, "", true);
  });
  add("no thought", before + ANSWERS[1]! + after, "", ANSWERS[1]!);
  return samples;
});
