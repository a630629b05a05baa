/**
 * What reasoning and tool parsers add to the way of a token from its id to the events of an answer, with Qwen 3's tokenizer and
 * parsers, one token at a time. Nanoseconds per token.
 *
 *     node scripts/bun.mjs bench/choice.ts
 */
import { Choice, type OutputOptions } from "../src/generation/choice.ts";
import type { GenerationSink } from "../src/generation/events.ts";
import { parsingOptions } from "../src/generation/parsing.ts";
import { demoModelFiles } from "../src/tokenizer/demo-model.ts";
import { loadTokenizer, openTokenizer } from "../src/tokenizer/load.ts";

const TOKENS = 20_000;
const ROUNDS = 9;

const tokenizer = openTokenizer(await loadTokenizer(await demoModelFiles()));
let events = 0;
const sink: GenerationSink = {
  emit: () => void events++,
  flush() {},
};

const parsing = parsingOptions(
  tokenizer,
  { reasoning: "qwen3", tool: "qwen" },
  {
    tools: [{ name: "run", parameters: { type: "object", properties: { cmd: { type: "string" } } } }],
    parseTools: true,
    startsInReasoning: false,
    constrained: false,
    single: false,
    isForced: false,
  },
);

const outputOptions = (more: Partial<OutputOptions>): OutputOptions => ({
  skipSpecialTokens: true,
  stop: [],
  stopInReasoning: false,
  stopTokenIds: new Set(),
  eosTokenIds: new Set(),
  quietEosTokenIds: new Set(),
  includeStop: false,
  maxTokens: Number.POSITIVE_INFINITY,
  minTokens: 0,
  logprobs: false,
  tokenIds: false,
  parsing: undefined,
  ...more,
});

/** Ids of a text that is repeated until there are enough, between two others. */
function ids(text: string, before = "", after = ""): Uint32Array {
  const unit = tokenizer.encode(text);
  const body = Array.from({ length: Math.ceil(TOKENS / unit.length) }, () => [...unit]).flat();
  return Uint32Array.from([...tokenizer.encode(before), ...body, ...tokenizer.encode(after)]);
}

function round(tokens: Uint32Array, output: OutputOptions): number {
  const choice = new Choice(0, tokenizer, output);
  const one = new Uint32Array(1);
  const start = Bun.nanoseconds();
  for (let k = 0; k < tokens.length; k++) {
    one[0] = tokens[k]!;
    choice.push(one, 1, undefined);
    choice.emit(sink);
  }
  choice.finish(sink);
  return (Bun.nanoseconds() - start) / tokens.length;
}

const PROSE = "The quick brown fox, as they say (and it's true), jumps over 13 lazy dogs; a < b, [x] and {y}.\n";
const CODE = "const x = items.filter((a) => a.b < 3 && a[0] !== 'd'); // and {so} on\\n";
const plain = ids(PROSE);
const call = ids(CODE, '<tool_call>\n{"name": "run", "arguments": {"cmd": "', '"}}\n</tool_call>');
const stop = ["<END>"];
const rows: readonly (readonly [string, Uint32Array, OutputOptions])[] = [
  ["text, no parser", plain, outputOptions({})],
  ["text, parsers", plain, outputOptions({ parsing })],
  ["text, no parser, stop string", plain, outputOptions({ stop })],
  ["text, parsers, stop string", plain, outputOptions({ parsing, stop })],
  ["reasoning, parsers", ids(PROSE, "<think>\n"), outputOptions({ parsing })],
  ["a call, no parser", call, outputOptions({})],
  ["a call, parsers", call, outputOptions({ parsing })],
];
const best = rows.map(() => Number.POSITIVE_INFINITY);
for (let k = 0; k < ROUNDS; k++)
  rows.forEach(([, tokens, output], row) => {
    best[row] = Math.min(best[row]!, round(tokens, output));
  });
rows.forEach(([name], row) => {
  console.log(`${name}\t${best[row]!.toFixed(0)}`);
});
if (events === 0) throw new Error("nothing came out");
