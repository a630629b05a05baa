import type { Machine } from "../lab/machine.ts";
import { table } from "../lab/output.ts";
import { quantile } from "../loadgen/stats.ts";
import { KINDS, type Kind } from "./prompts.ts";
import type { ChildResult } from "./result.ts";

/** One process of one contestant. */
export interface Measured {
  readonly tokenizer: string;
  readonly contestant: string;
  readonly result: ChildResult;
}

const median = (values: readonly number[]): number => quantile(Float64Array.from(values).sort(), 0.5);
const ms = (value: number): string => (Number.isNaN(value) ? "–" : value.toFixed(value < 3 ? 3 : 1));
const ratio = (value: number): string => (Number.isFinite(value) ? value.toFixed(2) : "–");
const unique = (values: readonly string[]): string[] => [...new Set(values)];

/** The median over prompts of the best round of each prompt, and the median of all samples. */
function summary(rounds: readonly (readonly number[])[]): { best: number; all: number } {
  const best = rounds[0]?.map((_, prompt) => Math.min(...rounds.map((round) => round[prompt]!))) ?? [];
  return { best: median(best), all: median(rounds.flat()) };
}

/** All tables as Markdown. */
export function report(measured: readonly Measured[], machine: Machine, set: string): string {
  const tokenizers = unique(measured.map((m) => m.tokenizer));
  const contestants = unique(measured.map((m) => m.contestant));
  const of = (tokenizer: string, contestant: string): ChildResult[] =>
    measured.filter((m) => m.tokenizer === tokenizer && m.contestant === contestant).map((m) => m.result);

  const ratios = contestants.includes("fastokens") ? ["ours / fastokens", "its list left out"] : [];
  const rows = tokenizers.flatMap((tokenizer) => KINDS.map((kind) => row(tokenizer, kind)));
  function row(tokenizer: string, kind: Kind): string[] {
    const own = of(tokenizer, "ours");
    const ours = summary(own.map((r) => r.ms[kind]));
    const sum = own[0]?.sum[kind];
    const cells = contestants.map((name) => {
      const results = of(tokenizer, name);
      const { best, all } = summary(results.map((r) => r.ms[kind]));
      const other = results.some((r) => r.sum[kind] !== sum);
      return Number.isNaN(best) ? "–" : `${ms(best)} / ${ms(all)}${other ? " (ids differ)" : ""}`;
    });
    if (!contestants.includes("fastokens")) return [tokenizer, kind, ...cells];
    const fast = of(tokenizer, "fastokens");
    const listed = summary(fast.map((r) => r.ms[kind]));
    const bare = summary(fast.map((r) => r.bare_ms?.[kind] ?? []));
    return [
      tokenizer,
      kind,
      ...cells,
      `**${ratio(ours.best / listed.best)}** / ${ratio(ours.all / listed.all)}`,
      `${ratio(ours.best / bare.best)} / ${ratio(ours.all / bare.all)}`,
    ];
  }
  const speed = table(["tokenizer", "text", ...contestants, ...ratios], rows);

  const start = table(
    ["tokenizer", "", "load", "first prompt"],
    tokenizers.flatMap((tokenizer) =>
      contestants
        .map((name) => ({ name, results: of(tokenizer, name) }))
        .filter(({ results }) => results.length > 0)
        .map(({ name, results }) => {
          const both = (values: number[]): string => `${ms(Math.min(...values))} / ${ms(median(values))}`;
          return [tokenizer, name, both(results.map((r) => r.load_ms)), both(results.map((r) => r.first_ms))];
        }),
    ),
  );
  const mb = (bytes: number | undefined): string => ((bytes ?? Number.NaN) / 1e6).toFixed(1);
  const memory = table(
    ["tokenizer", "shared", "each thread"],
    tokenizers.map((tokenizer) => {
      const used = of(tokenizer, "ours").find((r) => r.memory)?.memory;
      return [tokenizer, mb(used?.shared), mb(used?.thread)];
    }),
  );
  const versions = contestants.map((name) => {
    const version = measured.find((m) => m.contestant === name)?.result.version;
    return `${name} ${version}`;
  });
  return `${machine.date}. ${machine.cpu}, ${machine.cores} cores, ${machine.memory_gb} GB, Linux ${machine.kernel}, Bun ${machine.bun}; load average at the start ${machine.load}. ${versions.join(", ")}. Prompts: ${set}.

## Prompts seen for the first time, warm process (ms)

Median prompt by its best round / median of all samples; ratios likewise.

${speed}

## Cold (ms, least / median)

${start}

## Memory of ours (MB)

${memory}
`;
}
