/**
 * What parsers add to a token where streams take turns: 256 answers, a token each in turn, and the processor's caches filled with
 * other data in between. Nanoseconds per token, the best of some rounds.
 *
 *     node scripts/bun.mjs bench/parsers-cold.ts [MiB of other data between two tokens of an answer: 64]
 */
import { Choice, type OutputOptions } from "../src/generation/choice.ts";
import type { GenerationSink } from "../src/generation/events.ts";
import { parsingOptions } from "../src/generation/parsing.ts";
import { demoModelFiles } from "../src/tokenizer/demo-model.ts";
import { loadTokenizer, openTokenizer } from "../src/tokenizer/load.ts";

const ANSWERS = 256;
/** Answers whose tokens come together, as in one read of a socket. */
const TOGETHER = 16;
const TOKENS = 400;
/** First tokens that do not count: the begin of a call. */
const SKIPPED = 40;
const ROUNDS = 3;

const tokenizer = openTokenizer(await loadTokenizer(await demoModelFiles()));
const sink: GenerationSink = { emit: () => {}, flush: () => {} };
const others = new Float64Array(((Number(process.argv[2] ?? 64) * TOGETHER) / ANSWERS) * (1 << 17));
let sum = 0;

function fillCaches(): void {
  for (let i = 0; i < others.length; i += 8) sum += others[i]!;
}

const plainOutput: OutputOptions = {
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
};

const withParsers = (reasoning: string, tool: string): OutputOptions => ({
  ...plainOutput,
  parsing: parsingOptions(
    tokenizer,
    { reasoning, tool },
    {
      tools: [{ name: "run", parameters: { type: "object", properties: { cmd: { type: "string" } } } }],
      parseTools: true,
      startsInReasoning: false,
      constrained: false,
      single: false,
      isForced: false,
    },
  ),
});

function ids(text: string, before: string): Uint32Array {
  const unit = tokenizer.encode(text);
  const body = Array.from({ length: Math.ceil(TOKENS / unit.length) }, () => [...unit]).flat();
  return Uint32Array.from([...tokenizer.encode(before), ...body]);
}

function measure(tokens: Uint32Array, output: OutputOptions): number {
  const choices = Array.from({ length: ANSWERS }, (_, index) => new Choice(index, tokenizer, output));
  const one = new Uint32Array(1);
  let time = 0;
  for (let t = 0; t < tokens.length; t++) {
    one[0] = tokens[t]!;
    for (let from = 0; from < ANSWERS; from += TOGETHER) {
      fillCaches();
      const start = Bun.nanoseconds();
      for (let k = from; k < from + TOGETHER; k++) {
        choices[k]!.push(one, 1, undefined);
        choices[k]!.emit(sink);
      }
      if (t >= SKIPPED) time += Bun.nanoseconds() - start;
    }
  }
  return time / (tokens.length - SKIPPED) / ANSWERS;
}

const PROSE = "The quick brown fox, as they say (and it's true), jumps over 13 lazy dogs; a < b, [x] and {y}.\n";
const CODE = "const x = items.filter((a) => a.b < 3 && a[0] !== 'd'); // and {so} on\\n";
/** Parsers, and how a call begins up to the text of its argument. */
const FAMILIES: readonly (readonly [reasoning: string, tool: string, call: string])[] = [
  ["qwen3", "qwen", '<tool_call>\n{"name": "run", "arguments": {"cmd": "'],
  ["qwen3", "qwen_xml", "<tool_call>\n<function=run>\n<parameter=cmd>\n"],
  ["base", "llama", '{"name": "run", "parameters": {"cmd": "'],
  [
    "deepseek_v31",
    "deepseek32",
    '<｜DSML｜function_calls>\n<｜DSML｜invoke name="run">\n<｜DSML｜parameter name="cmd" string="true">',
  ],
  [
    "kimi_k25",
    "kimik2",
    '<|tool_calls_section_begin|><|tool_call_begin|>functions.run:0<|tool_call_argument_begin|>{"cmd": "',
  ],
  ["harmony", "harmony", '<|channel|>commentary to=functions.run<|message|>{"cmd": "'],
  ["glm45", "glm45_moe", "<tool_call>run\n<arg_key>cmd</arg_key>\n<arg_value>"],
];
const plain = ids(PROSE, "");
const rows = [
  ["no parser", plain, plainOutput] as const,
  ...FAMILIES.flatMap(([reasoning, tool, call]) => {
    const output = withParsers(reasoning, tool);
    return [[`${tool}, text`, plain, output] as const, [`${tool}, in a call`, ids(CODE, call), output] as const];
  }),
];
for (const [label, tokens, output] of rows) {
  const times = Array.from({ length: ROUNDS }, () => measure(tokens, output));
  console.log(`${label}\t${Math.min(...times).toFixed(0)}`);
}
if (Number.isNaN(sum)) throw new Error("the other data is none");
