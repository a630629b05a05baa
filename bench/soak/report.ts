import { table } from "../lab/output.ts";
import type { SoakFigures, Verdicts } from "./checks.ts";
import { memorySlope } from "./trend.ts";

const WRONG_SHOWN = 20;
const megabytes = (bytes: number | undefined): string => ((bytes ?? 0) / 1e6).toFixed(0);
const counts = (map: ReadonlyMap<string, number>): string => [...map].map(([name, n]) => `${name} ${n}`).join(", ");

/** A soak as Markdown. */
export function soakText(machine: string, figures: SoakFigures, verdicts: Verdicts): string {
  const { options, capacity, rate, heldBack, mischief, tally, memory } = figures;
  const bytes = memory.map((sample) => sample.bytes);
  return [
    `# Soak of ${options.seconds} s, ${options.threads} serving threads`,
    "",
    `${machine} Seed ${options.seed}.`,
    "",
    table(
      ["figure", "value"],
      [
        ["requests a second that the fleet bears", capacity.toFixed(1)],
        ["requests a second in the soak", rate.toFixed(1)],
        ["requests", String(tally.all)],
        ["not sent, as too many were under way", String(heldBack)],
        ["tokens checked", String(tally.tokens)],
        ["whole", String(tally.exact)],
        ["left by their client", String(tally.aborted)],
        ["failed before the first token", String(tally.early)],
        ["failed after it", String(tally.late)],
        ["failures by code", counts(tally.codes)],
        ["faults", counts(mischief)],
        [
          "memory (RSS) at the start, least, most, at the end (MB)",
          [bytes[0], Math.min(...bytes), Math.max(...bytes), bytes.at(-1)].map(megabytes).join(", "),
        ],
        ["slope of the memory after a fifth of the time (MB/min)", memorySlope(memory, 0.2).toFixed(2)],
      ],
    ),
    "",
    ...verdicts.lines.map((line) => `    ${line}`),
    "",
    ...tally.wrong.slice(0, WRONG_SHOWN).map((why) => `* ${why}`),
  ].join("\n");
}
