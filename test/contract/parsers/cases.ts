/** Samples from building blocks: every writer, with values that are known to go wrong, at every place of an answer. */
import { createHash } from "node:crypto";
import type { Sample } from "./samples.ts";
import { type Call, WRITERS, type Writer } from "./writers.ts";

const VALUES = (trap: string): readonly Call[] => [
  ["ping", {}],
  ["get_weather", { city: "Oslo", days: 2 }],
  ["run", { cmd: 'if [ "$a" = \'}\' ]; then echo "{\\n]"; fi\n# done, (ok)' }],
  ["run", { cmd: trap }],
  ["search", { q: "東京 😀 é <b>&lt;</b>", limit: 0 }],
  ["search", { q: "42" }],
  ["search", { q: "null" }],
  ["calc", { x: -1.5, flag: true, items: [1, "a ] b", null, -2.5e3], cfg: { k: { d: [{}], e: "}" } } }],
  ["calc", { flag: false, items: [], cfg: null }],
  ["nope", { a: 1 }],
];

/** With the names by which their other writers call them. */
const MOST_USED: ReadonlySet<string> = new Set([
  ...["qwen", "hermes", "qwen_xml", "qwen3_coder", "llama", "llama3_json", "deepseek", "deepseek31"],
  ...["kimik2", "kimi_k2", "harmony", "gpt_oss"],
]);

const BEFORE = "Sure, 1 < 2 [a] {b}.\n";
const AFTER = "\nDone: it's <ok>.";

/** The cases of one writer. */
export function casesOf(writer: Writer): Sample[] {
  const values = VALUES(writer.trap);
  const samples: Sample[] = [];
  const add = (label: string, before: string, calls: readonly Call[], after: string): void => {
    if (before !== "" && writer.onlyAtStart === true) return;
    if (calls.length > 1 && writer.oneCall === true) return;
    const unknown = calls.some(([name]) => name === "nope");
    if (unknown && (writer.unknown === "never" || (writer.unknown === "atStart" && before !== ""))) return;
    samples.push({
      id: `${writer.parser}${writer.label === undefined ? "" : ` (${writer.label})`}: ${label}`,
      tool: writer.parser,
      input: before + (before === "" ? "" : (writer.before ?? "")) + writer.write(calls) + after,
      startsInReasoning: false,
      content: before + after,
      thoughts: "",
      calls: calls.map(([name, args]) => [name, writer.reads?.(args) ?? args]),
      chunks: undefined,
    });
  };
  values.forEach((call, k) => {
    const next = values[(k + 3) % values.length]!;
    add(`${k} alone`, "", [call], "");
    add(`${k} amid text`, BEFORE, [call], AFTER);
    add(`${k} twice, and another`, writer.onlyAtStart === true ? "" : BEFORE, [call, call, next], "");
    if (!MOST_USED.has(writer.parser)) return;
    add(`${k} behind text`, BEFORE, [call], "");
    add(`${k} before text`, "", [call], AFTER);
    add(`${k} and another`, "", [call, next], "");
  });
  return samples;
}

/** All cases. */
export const CASES: readonly Sample[] = WRITERS.flatMap(casesOf);

/** A number between 0 and 1 that depends on the seed alone. */
export function randomOf(seed: string): () => number {
  let state = createHash("sha256").update(seed).digest().readUInt32LE(0);
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}
