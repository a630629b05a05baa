/** Soup of markers, halves of calls and text, from a fixed seed: nothing throws, and what is no call comes out byte for byte. */
import { describe, expect, test } from "bun:test";
import { StopMatcher } from "../../../src/generation/stops.ts";
import type { ContentFilter } from "../../../src/parsers/filter.ts";
import { REASONING_FAMILIES } from "../../../src/parsers/reasoning/index.ts";
import { CASES, randomOf } from "./cases.ts";
import type { Sample } from "./samples.ts";
import { takeApart } from "./thought-oracle.ts";
import { THOUGHTS } from "./thoughts.ts";
import { markersOf, parse, tokensOf } from "./ways.ts";

const ROUNDS = 60;
/** Formats with markers that belong to no one even where no call is near. */
const DROPS_MARKERS = new Set(["cohere", "kimi_k3", "harmony", "gpt_oss", "inkling", "gigachat3", "plamo3"]);
const SCRAPS = [
  ...[
    "{",
    "}",
    "[",
    "]",
    '"',
    "'",
    "\\",
    ",",
    ":",
    ";",
    "<",
    ">",
    "</",
    "<|",
    "|>",
    "\n",
    " ",
    "(",
    ")",
    "=",
    "1",
    "-",
  ],
  ...[
    '{"name": "',
    '"arguments": {',
    "null",
    "True",
    "東",
    "😀",
    "word ",
    "call:",
    "functions.",
    "```json",
    "[[[[",
    "{{{{",
  ],
];

function soup(samples: readonly Sample[], markers: readonly string[], random: () => number): string {
  let text = "";
  for (let k = 1 + Math.floor(random() * 12); k > 0; k--) {
    const kind = random();
    if (kind < 0.3 && markers.length > 0) text += markers[Math.floor(random() * markers.length)];
    else if (kind < 0.6) text += SCRAPS[Math.floor(random() * SCRAPS.length)];
    else {
      const { input } = samples[Math.floor(random() * samples.length)]!;
      const from = Math.floor(random() * input.length);
      text += input.slice(from, from + Math.floor(random() * 60));
    }
  }
  // Halves of characters are no text.
  return text.toWellFormed().replaceAll("\ufffd", "");
}

/** Whether all characters of `part` stand in `whole`, in this order. */
function isWithin(part: string, whole: string): boolean {
  let at = 0;
  for (const c of part) {
    at = whole.indexOf(c, at);
    if (at < 0) return false;
    at += c.length;
  }
  return true;
}

function checkSoup(
  sample: Sample,
  text: string,
  markers: readonly string[],
  random: () => number,
): ReturnType<typeof parse> {
  const whole = parse(sample, [text]);
  const tokens = tokensOf(text, [], () => 1 + Math.floor(random() * 5));
  expect({ text, answer: parse(sample, tokens) }).toEqual({ text, answer: whole });
  expect({ text, answer: parse(sample, text.split("")) }).toEqual({ text, answer: whole });
  // Mistral's markers are spelled with brackets of JSON: as text inside a list they read as one.
  // With both parsers, half a marker in front of a thought may still become one where markers are text.
  const isPair = sample.tool !== undefined && sample.reasoning !== undefined;
  // At the end half a marker is markup where markers are text, and text where they are tokens.
  const endsInHalf = markers.some((marker) => [...marker].some((_, k) => k > 0 && text.endsWith(marker.slice(0, k))));
  const isText = sample.tool === "mistral" || sample.tool === "xlam" || isPair || endsInHalf;
  const special = new Set(isText ? [] : markers);
  const pieces = tokensOf(text, [...special], () => 1 + Math.floor(random() * 5));
  expect({ text, answer: parse(sample, pieces, special) }).toEqual({ text, answer: whole });
  expect(isWithin(whole.content, text)).toBe(true);
  expect(isWithin(whole.reasoning, text)).toBe(true);
  return whole;
}

/** Reasoning and calls in one answer, also under a filter that holds text back. */
const PAIRS: readonly (readonly [reasoning: string, tool: string])[] = [
  ["base", "hermes"],
  ["qwen3", "qwen_xml"],
  ["deepseek_r1", "deepseek"],
  ["deepseek_v31", "deepseek32"],
  ["kimi_k25", "kimik2"],
  ["kimi_k3", "kimi_k3"],
  ["glm45", "glm45_moe"],
  ["minimax", "minimax_m2"],
  ["cohere_cmd", "cohere"],
  ["hunyuan_a13b", "hunyuan"],
  ["gemma4", "gemma4"],
  ["base", "json"],
  ["base", "pythonic"],
  ["step3", "step3"],
];

function filterOf(stops: readonly string[]): ContentFilter {
  const matcher = new StopMatcher(
    stops.filter((stop) => stop !== ""),
    false,
  );
  return {
    push: (text) => matcher.push(text),
    end: () => matcher.end(),
    get stopped() {
      return matcher.matched !== undefined;
    },
  };
}

describe("marker soup of reasoning and calls", () => {
  for (const [reasoning, tool] of PAIRS) {
    test(`${reasoning} and ${tool}`, () => {
      const calls = CASES.filter((sample) => sample.tool === tool);
      const thoughts = THOUGHTS.filter((sample) => sample.reasoning === reasoning);
      const random = randomOf(`soup of ${reasoning} and ${tool}`);
      for (let round = 0; round < ROUNDS; round++) {
        const sample: Sample = { ...calls[0]!, reasoning, startsInReasoning: random() < 0.3 };
        const markers = markersOf(sample);
        const text = soup(random() < 0.5 ? calls : thoughts, markers, random) + soup(calls, markers, random);
        checkSoup(sample, text, markers, random);
        const at = Math.floor(random() * text.length);
        const stops = [text.slice(at, at + 3), "<tool", "</think>x"];
        const filtered = (pieces: readonly string[]) => parse(sample, pieces, new Set(), filterOf(stops));
        const tokens = tokensOf(text, [], () => 1 + Math.floor(random() * 5));
        expect({ text, stops, answer: filtered(tokens) }).toEqual({ text, stops, answer: filtered([text]) });
      }
    });
  }
});

describe("marker soup", () => {
  for (const [family, samples] of Map.groupBy(CASES, (sample) => sample.tool!)) {
    test(family, () => {
      const sample = samples[0]!;
      const random = randomOf(`soup of ${family}`);
      const markers = markersOf(sample);
      for (let round = 0; round < ROUNDS; round++) {
        const text = soup(samples, markers, random);
        const answer = checkSoup(sample, text, markers, random);
        if (answer.toolCalls.length === 0 && !DROPS_MARKERS.has(family)) expect(answer.content).toBe(text);
      }
    });
  }

  for (const [family, samples] of Map.groupBy(THOUGHTS, (sample) => sample.reasoning!)) {
    test(`reasoning: ${family}`, () => {
      const sample = samples[0]!;
      const random = randomOf(`soup of thoughts of ${family}`);
      const markers = markersOf(sample);
      for (let round = 0; round < ROUNDS; round++) {
        const text = soup(samples, markers, random);
        const { content, reasoning } = checkSoup(sample, text, markers, random);
        // Formats of channels have no such markers.
        const between = REASONING_FAMILIES[family];
        if (between !== undefined) expect({ text, content, reasoning }).toEqual({ text, ...takeApart(between, text) });
      }
    });
  }
});

/** A header of harmony that has come to its end: words in it are no text. */
const HEADER = /(?:<\|start\|>|<\|channel\|>)(?:(?!<\|(?:start|end|call|return)\|>)[\s\S])*?<\|message\|>/g;
/** Inkling: names between the begin of a message and the kind of its content, and calls in the text form, which are dropped. */
const INKLING_METADATA = [
  /<\|message_model\|>(?:(?!<\|(?:message_model|content_\w+|end_message)\|>)[\s\S])*(?=<\|content_(?:text|thinking|invoke\w+)\|>)/g,
  /<\|content_invoke_tool_text\|>(?:(?!<\|(?:message_model|content_\w+|end_message)\|>)[\s\S])*/g,
];

describe("no word of an answer is lost, wherever markers stand", () => {
  const families: Sample[] = [
    ...[...Map.groupBy(CASES, (sample) => sample.tool!).values()].map((samples) => samples[0]!),
    ...[...Map.groupBy(THOUGHTS, (sample) => sample.reasoning!).values()].map((samples) => samples[0]!),
  ];
  for (const sample of families) {
    const name = sample.tool ?? sample.reasoning!;
    test(`${sample.tool === undefined ? "reasoning: " : ""}${name}`, () => {
      const random = randomOf(`words of ${name}`);
      const markers = markersOf(sample);
      const pick = (of: readonly string[]) => of[Math.floor(random() * of.length)] ?? "";
      for (let round = 0; round < 4 * ROUNDS; round++) {
        let text = "";
        for (let k = 0; k < 8; k++) {
          const marker = pick(markers);
          const kind = random();
          if (kind < 0.45) text += marker;
          else if (kind < 0.55) text += marker.slice(0, Math.floor(random() * marker.length));
          else text += `${pick(["", " ", "\n"])}zq${k}z${pick(["", " ", "\n"])}`;
        }
        const { content, reasoning, toolCalls } = parse(sample, [text]);
        const said = content + reasoning + toolCalls.map((call) => `${call.name}${call.id}${call.arguments}`).join("");
        let visible = text;
        if (markers.includes("<|channel|>")) visible = text.replaceAll(HEADER, "");
        if (name === "inkling") for (const metadata of INKLING_METADATA) visible = visible.replaceAll(metadata, "");
        const words: readonly string[] = visible.match(/zq\dz/g) ?? [];
        const lost = words.filter((word) => !said.includes(word));
        expect({ text, lost }).toEqual({ text, lost: [] });
      }
    });
  }
});

describe("damage inside a call loses no word behind it", () => {
  for (const [family, samples] of Map.groupBy(CASES, (sample) => sample.tool!)) {
    test(family, () => {
      const random = randomOf(`damage of ${family}`);
      const upTo = (limit: number) => Math.floor(random() * limit);
      const alone = samples.filter(
        ({ id, input }) => / \d alone$/.test(id) && !input.includes("<|content_invoke_tool_text|>"),
      );
      for (let round = 0; round < 4 * ROUNDS; round++) {
        const sample = alone[upTo(alone.length)]!;
        const { input } = sample;
        const at = upTo(input.length);
        const damaged = input.slice(0, at) + input.slice(at + 1 + upTo(12));
        const words = Array.from({ length: 1 + upTo(60) }, (_, k) => `zq${k}z`);
        const text = `${damaged} ${words.join(" ")}`;
        const whole = parse(sample, [text]);
        expect({ text, answer: parse(sample, text.split("")) }).toEqual({ text, answer: whole });
        const { content, reasoning, toolCalls } = whole;
        const said = content + reasoning + toolCalls.map((call) => call.name + call.arguments).join("");
        expect({ text, lost: words.filter((word) => !said.includes(word)) }).toEqual({ text, lost: [] });
      }
    });
  }
});
