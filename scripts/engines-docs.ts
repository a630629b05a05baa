// Writes the tables of docs/engines.md from what the tests of the dialects and of the real engines found:
//   node scripts/bun.mjs run scripts/engines-docs.ts
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Verdict } from "../test/contract/engines/dialects/case.ts";
import kept from "../test/contract/engines/dialects/verdicts.json";

const root = join(import.meta.dir, "..");
const RESULTS = join(root, "test", "engines");

/** The page that holds the tables. */
export const enginesPage = join(root, "docs", "engines.md");

/** What a case found, by dialect and age (`vllm 0.4.14`). */
export interface CaseVerdicts {
  readonly feature: string;
  readonly verdicts: Readonly<Record<string, Verdict>>;
}

const NAMES: Readonly<Record<string, string>> = {
  vllm: "vLLM",
  sglang: "SGLang",
  tokenspeed: "TokenSpeed",
  trtllm: "TensorRT-LLM",
  mlx: "MLX",
};

/** Remarks that cells point to by their number. */
class Notes {
  readonly list: string[] = [];

  numberOf(text: string): number {
    const known = this.list.indexOf(text);
    return known >= 0 ? known + 1 : this.list.push(text);
  }
}

/** A verdict in a word. Throws for a refusal that is neither the gateway's 400 nor a call that the engine lacks. */
function word(verdict: Verdict, notes: Notes): string {
  if (verdict === "works") return "works";
  if ("differs" in verdict) return `note ${notes.numberOf(verdict.differs)}`;
  if (/ has no such (call|service)$/.test(verdict.refused)) return "not offered";
  if (/ does not support /.test(verdict.refused)) return "400";
  throw new Error(`a refusal of a new kind: ${verdict.refused}`);
}

/** What a dialect does at the ages that were tried; one word where the age makes no difference. */
function cell(dialect: string, verdicts: Readonly<Record<string, Verdict>>, notes: Notes): string {
  const ages = Object.entries(verdicts).filter(([name]) => name.startsWith(`${dialect} `));
  if (ages.length === 0) throw new Error(`nothing is known of ${dialect}`);
  const words = ages.map(([name, verdict]) => [name.slice(dialect.length + 1), word(verdict, notes)] as const);
  if (new Set(words.map(([, text]) => text)).size === 1) return words[0]![1];
  return words.map(([age, text]) => `${age}: ${text}`).join("<br>");
}

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => "---"), ...rows].map((row) => `| ${row.join(" | ")} |`).join("\n");

/** Dialect by feature: what all do is a list, what makes a difference a table. */
export function featureTable(cases: readonly CaseVerdicts[]): string {
  const notes = new Notes();
  const dialects = Object.keys(NAMES);
  const isCommon = ({ verdicts }: CaseVerdicts) => Object.values(verdicts).every((verdict) => verdict === "works");
  const rows = cases
    .filter((each) => !isCommon(each))
    .map(({ feature, verdicts }) => [feature, ...dialects.map((dialect) => cell(dialect, verdicts, notes))]);
  return [
    table(["", ...Object.values(NAMES)], rows),
    "",
    ...notes.list.map((note, i) => `${i + 1}. ${note}`),
    "",
    "The same on all five, at both ages:",
    "",
    ...cases.filter(isCommon).map(({ feature }) => `* ${feature}`),
  ].join("\n");
}

/** What a file of results says of itself: the list at its top, and the names of the cases that differed. */
function resultsOf(text: string): string[] {
  const [top = "", differences = ""] = text.split(/^## Differences$/m);
  const said = top.split("\n").filter((line) => line.startsWith("- "));
  const failed = [...differences.split(/^## /m)[0]!.matchAll(/^- \*\*(.+)\*\*$/gm)].map(([, name]) => name!);
  return failed.length === 0 ? said : [...said, `- failed: ${failed.join("; ")}`];
}

function realTable(): string {
  const files = readdirSync(RESULTS)
    .filter((name) => /^RESULTS.*\.md$/.test(name))
    .sort();
  return files
    .map((name) => {
      const text = readFileSync(join(RESULTS, name), "utf8");
      const title = /^# (.+)$/m.exec(text)?.[1] ?? name;
      return [`${title} ([all of it](../test/engines/${name})):`, "", ...resultsOf(text)].join("\n");
    })
    .join("\n\n");
}

const TABLES: Readonly<Record<string, () => string>> = {
  features: () => featureTable(Object.values(kept) as readonly CaseVerdicts[]),
  "real engines": realTable,
};

/**
 * The page with its tables made new. They stand between `<!-- table of features -->` and `<!-- end -->`.
 * @throws Error for a mark that names no table
 */
export function withEngineTables(page: string): string {
  return page.replace(
    /(<!-- table of ([\w ]+) -->\n)[\s\S]*?(<!-- end -->)/g,
    (_, begin: string, name: string, end: string) => {
      const make = TABLES[name];
      if (make === undefined) throw new Error(`there is no table of ${name}`);
      return `${begin}\n${make()}\n\n${end}`;
    },
  );
}

if (import.meta.main) writeFileSync(enginesPage, withEngineTables(readFileSync(enginesPage, "utf8")));
