/** The samples of the parsers: what a model generated, and what must come of it. */
import { readFileSync } from "node:fs";
import type { ToolSchema } from "../../../src/parsers/tools.ts";

/** One sample of test/golden/parsers; see the README there. */
export interface Sample {
  readonly id: string;
  readonly tool?: string;
  readonly reasoning?: string;
  readonly input: string;
  readonly startsInReasoning: boolean;
  readonly content: string;
  readonly thoughts: string | undefined;
  readonly calls: readonly (readonly [name: string, args: unknown, complete?: boolean])[] | undefined;
  readonly chunks: readonly string[] | undefined;
}

interface Row {
  readonly id: string;
  readonly p?: string;
  readonly r?: string;
  readonly in: string;
  readonly content: string;
  readonly reasoning?: string;
  readonly calls?: [string, unknown, boolean?][];
  readonly prefill?: boolean;
  readonly chunks?: string[];
}

/** The files of samples. */
export const SAMPLE_FILES = [
  "tool-samples.jsonl",
  "reasoning-samples.jsonl",
  "own-tool-samples.jsonl",
  "own-reasoning-samples.jsonl",
  "sglang-samples.jsonl",
  "harmony-samples.jsonl",
] as const;

const GOLDEN = new URL("../../golden/parsers/", import.meta.url);
const read = (name: string): string => readFileSync(new URL(name, GOLDEN), "utf8");

/** The samples of one file. */
export function samplesOf(file: string): Sample[] {
  return read(file)
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const row = JSON.parse(line) as Row;
      return {
        id: `${row.p ?? row.r}: ${row.id}`,
        ...(row.p === undefined ? {} : { tool: row.p }),
        ...(row.r === undefined ? {} : { reasoning: row.r }),
        input: row.in,
        startsInReasoning: row.prefill ?? false,
        content: row.content,
        thoughts: row.reasoning,
        calls: row.calls,
        chunks: row.chunks,
      };
    });
}

/** The tools that all samples declare. */
export const TOOLS: ToolSchema[] = (JSON.parse(read("tools.json")) as { function: ToolSchema }[]).map(
  (tool) => tool.function,
);
