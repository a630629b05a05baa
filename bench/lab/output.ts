import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { spread } from "../loadgen/stats.ts";
import type { Figure } from "./cells.ts";
import { RESULTS } from "./paths.ts";

/** A number with its spread: `median (min–max)`; a dash for none. */
export function withSpread(values: readonly number[], digits: number): string {
  if (values.length === 0) return "–";
  const { median, min, max } = spread(values);
  if (values.length === 1) return median.toFixed(digits);
  return `${median.toFixed(digits)} (${min.toFixed(digits)}–${max.toFixed(digits)})`;
}

export function figureLabel(figure: Figure): string {
  return `${figure.label} (${figure.unit})`;
}

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [line(head), `|${head.map(() => "---|").join("")}`, ...rows.map(line)].join("\n");
}

/** Writes a result as Markdown and JSON under bench/results; gives the name of the Markdown file in the repository. */
export async function writeResult(name: string, markdown: string, data: unknown): Promise<string> {
  mkdirSync(RESULTS, { recursive: true });
  await Bun.write(join(RESULTS, `${name}.md`), markdown);
  await Bun.write(join(RESULTS, `${name}.json`), `${JSON.stringify(data, undefined, 1)}\n`);
  return `bench/results/${name}.md`;
}
