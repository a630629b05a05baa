/** Every sample in every way: whole, by characters, at every split, in random pieces, with markers as tokens, cut at every offset. */
import { describe, expect, test } from "bun:test";
import type { ParsedAnswer } from "../../../src/parsers/events.ts";
import { CASES, randomOf } from "./cases.ts";
import { SAMPLE_FILES, type Sample, samplesOf } from "./samples.ts";
import { THOUGHTS } from "./thoughts.ts";
import { markersOf, parse, summary, tokensOf } from "./ways.ts";

const LONG = 200;

function expected(sample: Sample, answer: ParsedAnswer): unknown {
  const { content, thoughts, calls } = sample;
  return {
    content,
    reasoning: thoughts ?? answer.reasoning,
    calls:
      calls === undefined
        ? answer.toolCalls.map((call) => call.name)
        : calls.map(([name, args, complete = true]) => [name, args, complete]),
  };
}

/**
 * @param stride of the splits and cuts, where samples are many
 * @param from the first of them
 */
function check(sample: Sample, stride = 1, from = 0): void {
  const { input } = sample;
  const whole = parse(sample, [input]);
  expect(summary(whole)).toEqual(expected(sample, whole));
  const same = (pieces: readonly string[], isSpecial?: ReadonlySet<string>) => {
    const answer = parse(sample, pieces, isSpecial);
    if (!Bun.deepEquals(answer, whole))
      expect({ id: sample.id, pieces, isSpecial, answer }).toEqual({ id: sample.id, pieces, isSpecial, answer: whole });
  };
  same([...input]);
  same(input.split(""));
  if (sample.chunks !== undefined) same(sample.chunks);
  for (let k = 1 + from; k < input.length; k += stride) same([input.slice(0, k), input.slice(k)]);
  const random = randomOf(sample.id);
  const markers = markersOf(sample);
  const size = () => 1 + Math.floor(random() * 7);
  for (let round = 0; round < 3; round++) {
    same(tokensOf(input, markers, size));
    same(tokensOf(input, markers, size), new Set(markers));
    const some = markers.filter(() => random() < 0.5);
    same(tokensOf(input, some, size), new Set(some));
  }
  for (let cut = from; cut < input.length; cut += stride)
    checkCut(sample, whole, cut, (text) => tokensOf(text, [], size));
}

/** An answer that was cut off: what came is the begin of the whole; what was held back and is no call after all is text. */
function checkCut(sample: Sample, whole: ParsedAnswer, cut: number, pieces: (text: string) => string[]): void {
  const input = sample.input.slice(0, cut);
  const answer = parse(sample, [input]);
  const inPieces = parse(sample, pieces(input));
  if (!Bun.deepEquals(answer, inPieces))
    expect({ id: sample.id, cut, answer: inPieces }).toEqual({ id: sample.id, cut, answer });
  const fine =
    isBeginOrRest(answer.content, whole.content, input) &&
    isBeginOrRest(answer.reasoning, whole.reasoning, input) &&
    answer.toolCalls.every((call, k) => {
      const full = whole.toolCalls[k];
      if (full === undefined || call.name !== full.name) return false;
      return call.complete ? call.arguments === full.arguments : isBeginOrRaw(call.arguments, full.arguments, input);
    });
  if (!fine) expect({ id: sample.id, cut, input, answer }).toEqual({ id: sample.id, cut, input, answer: whole });
}

/** `text` is a begin of `full`, and behind it at most what `input` ends with. */
function isBeginOrRest(text: string, full: string, input: string): boolean {
  let common = 0;
  while (common < text.length && text[common] === full[common]) common++;
  for (let at = common; at >= 0; at--) {
    const rest = text.slice(at);
    if (input.endsWith(rest) || input.trimEnd().endsWith(rest)) return true;
  }
  return false;
}

/**
 * `args` is a begin of `full`, never with markup of the format or an invented quote. Only its last few characters may differ:
 * an escape that is not whole; the quote of a string whose closer turned out to be part of it; a raw value that is no string and
 * not yet as it would be (Python's constants and lists).
 */
function isBeginOrRaw(args: string, full: string, input: string): boolean {
  if (full.startsWith(args)) return true;
  const half = /\\[u\da-f]{0,5}$/.exec(args)?.[0] ?? "";
  if (half !== "" && full.startsWith(args.slice(0, -half.length))) return true;
  if (args.endsWith('"') && full.startsWith(args.slice(0, -1))) return true;
  const raw = args.slice(args.lastIndexOf('":') + 2).trimStart();
  return /^[^"<]/.test(raw) && full.startsWith(args.slice(0, -raw.length)) && input.includes(raw);
}

describe("samples", () => {
  for (const sample of SAMPLE_FILES.flatMap(samplesOf)) test(sample.id, () => check(sample));
});

describe("calls from building blocks", () => {
  const families = Map.groupBy(CASES, (sample) => sample.tool!);
  for (const [family, samples] of families) {
    test(`${family}: ${samples.length} samples`, () => {
      expect(samples.length).toBeGreaterThanOrEqual(12);
      // The long ones repeat the short ones: they share the offsets among them.
      samples.forEach((sample, k) => {
        if (sample.input.length > LONG) check(sample, 3, k % 3);
        else check(sample);
      });
    });
  }
});

describe("reasoning from building blocks", () => {
  const families = Map.groupBy(THOUGHTS, (sample) => sample.reasoning!);
  for (const [family, samples] of families) {
    test(`${family}: ${samples.length} samples`, () => {
      expect(samples.length).toBeGreaterThanOrEqual(12);
      for (const sample of samples) check(sample);
    });
  }
});
