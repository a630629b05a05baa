/**
 * What the parsers add to each token: plain text, and inside a tool call. A line per parser, in nanoseconds per token of about
 * four characters, pushed one by one; and in microseconds, what a parser costs to make.
 *
 *     node scripts/bun.mjs bench/parsers.ts
 */
import type { ParserSink } from "../src/parsers/events.ts";
import { createOutputParser, type OutputParser } from "../src/parsers/parser.ts";
import { TOOLS } from "../test/contract/parsers/samples.ts";
import { WRITERS } from "../test/contract/parsers/writers.ts";

const TOKENS = 20_000;
const SIZE = 4;
const ROUNDS = 5;

let characters = 0;
const count = (delta: string): void => {
  characters += delta.length;
};
const sink: ParserSink = {
  text: count,
  reasoning: count,
  toolStart: () => {},
  toolArguments: (_, delta) => count(delta),
  toolEnd: () => {},
};

const PROSE = "The quick brown fox, as they say (and it's true), jumps over 13 lazy dogs; a < b, [x] and {y}.\n";
const plain = PROSE.repeat(Math.ceil((TOKENS * SIZE) / PROSE.length)).slice(0, TOKENS * SIZE);
const code = "const x = items.filter((a) => a.b < 3 && a[\"c\"] !== 'd');\n".repeat(Math.ceil((TOKENS * SIZE) / 59));

function tokensOf(text: string): string[] {
  const tokens: string[] = [];
  for (let at = 0; at < text.length; at += SIZE) tokens.push(text.slice(at, at + SIZE));
  return tokens;
}

const make = (tool: string): OutputParser =>
  createOutputParser(tool === "harmony" || tool === "inkling" || tool === "gpt_oss" ? undefined : "base", tool, {
    tools: TOOLS,
    startsInReasoning: false,
    singleTokenMarkers: new Set(),
    parseTools: true,
  });

/** The best of some rounds, in ns per token. */
function measure(tool: string, tokens: readonly string[]): number {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS; round++) {
    const parser = make(tool);
    const start = Bun.nanoseconds();
    for (const token of tokens) parser.push(token, sink);
    parser.finish(sink);
    best = Math.min(best, (Bun.nanoseconds() - start) / tokens.length);
  }
  return best;
}

const plainTokens = tokensOf(plain);
console.log("parser\tplain ns/token\tin a call ns/token\tto make us");
for (const writer of WRITERS) {
  const call = tokensOf(writer.write([["run", { cmd: code }]]));
  const start = Bun.nanoseconds();
  for (let k = 0; k < 2000; k++) make(writer.parser);
  const making = (Bun.nanoseconds() - start) / 2000 / 1000;
  const label = writer.label === undefined ? writer.parser : `${writer.parser} (${writer.label})`;
  const figures = [measure(writer.parser, plainTokens), measure(writer.parser, call)].map((ns) => ns.toFixed(0));
  console.log([label, ...figures, making.toFixed(1)].join("\t"));
}
if (characters === 0) throw new Error("nothing was parsed");
