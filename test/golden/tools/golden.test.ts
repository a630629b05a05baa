/** Structural tags as xgrammar has checked them (check_tags.py), and the texts they let through as our own parsers read them. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { structuralTagParsers } from "../../../src/generation/tools/structural-tag.ts";
import { foldEvents } from "../../../src/parsers/events.ts";
import { createOutputParser } from "../../../src/parsers/parser.ts";
import { ANSWER, TOOLS, type TagCase, tagCases } from "./structural-tags.ts";

const golden = JSON.parse(readFileSync(join(import.meta.dir, "structural-tags.json"), "utf8")) as { cases: TagCase[] };
const made = tagCases();

test("every family that has a tag is among them", () => {
  expect(golden.cases.length).toBe(272);
  const checked = new Set(golden.cases.map(({ parser }) => parser));
  expect(structuralTagParsers().filter((parser) => !checked.has(parser))).toEqual([]);
});

describe("structural tags", () => {
  test.each(golden.cases.map((each) => [each.name, each] as const))("%s", (name, { tag, accepts, ...more }) => {
    const found = made.find((each) => each.name === name)!;
    expect(JSON.parse(found.tag)).toEqual(JSON.parse(tag));
    expect(found.accepts).toEqual([...accepts]);
    expect(found.answers).toEqual(more.answers);
    expect(found.simulated).toBe(more.simulated);
    const read = (text: string) => {
      const { sink, answer } = foldEvents();
      const parser = createOutputParser(more.reasoning, more.parser, {
        tools: TOOLS,
        startsInReasoning: more.isOpen,
        singleTokenMarkers: new Set(),
        parseTools: true,
        constrained: true,
        jsonAnswer: more.answers !== undefined,
      });
      parser.push(text, sink);
      parser.finish(sink);
      return answer();
    };
    for (const text of accepts) {
      const { content, reasoning, toolCalls } = read(text);
      expect({ text, content: content.trim() }).toEqual({ text, content: "" });
      const wanted = [...text.matchAll(/get_(?:weather|time)/g)].map(([called]) => called);
      expect(toolCalls.map((call) => call.name)).toEqual(wanted);
      for (const call of toolCalls) {
        expect(call.complete || more.parser === "harmony").toBe(true); // its end token is not text
        const args = call.name === "get_weather" ? { city: "Paris", days: 2 } : {};
        expect(JSON.parse(call.arguments)).toEqual(args);
      }
      if (text.includes("Hm, ")) expect(reasoning.trim()).toBe('Hm, "they" {want} it.');
    }
    for (const [text, wanted] of more.answers ?? []) {
      const { content, reasoning, toolCalls } = read(text);
      expect({ text, content: content.trim(), calls: toolCalls.length }).toEqual({ text, content: wanted, calls: 0 });
      expect(reasoning.trim()).toBe(text.includes("Hm, ") ? 'Hm, "they" {want} it.' : "");
    }
    // numbers of the schema are those of the request
    if (more.answers !== undefined) expect(tag).toContain(ANSWER);
  });
});
