import type { ThinkingFamily } from "./thinking.ts";

/** A format of reasoning. */
export interface ReasoningFamily extends ThinkingFamily {
  /** How an answer begins when no rendered prompt tells; `toggle`: as the request's thinking switch says. */
  readonly starts: "text" | "reasoning" | "toggle";
}

const THINK = { open: ["<think>"], close: ["</think>"] } as const;

/** Reasoning parsers by name, those apart that carry calls in the same format. */
export const REASONING_FAMILIES: Readonly<Record<string, ReasoningFamily>> = {
  base: { ...THINK, starts: "text" },
  deepseek_r1: { ...THINK, starts: "reasoning" },
  qwen3: { ...THINK, starts: "toggle", endedBy: [{ marker: "<tool_call>", next: "{<" }] },
};

/** Every marker of a family. */
export function reasoningMarkers(family: ReasoningFamily): string[] {
  const { open, close, drop = [], textClosers = [], endedBy = [] } = family;
  return [...open, ...close, ...drop, ...textClosers, ...endedBy.map(({ marker }) => marker)];
}
