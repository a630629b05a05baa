/** Answers of requests that let a model call or answer in JSON, as they are read; their tags are among the golden ones. */
import { describe, expect, test } from "bun:test";
import { plannedParsing } from "../../../../src/apis/shared/planning.ts";
import { TEXT_ONLY } from "../../../../src/generation/parsing.ts";
import { planTools } from "../../../../src/generation/tools/plan.ts";
import { foldEvents } from "../../../../src/parsers/events.ts";
import { familiesOf } from "../../../../src/parsers/names.ts";
import { conversation, FAMILIES } from "../../../golden/tools/structural-tags.ts";

function read(names: { reasoning: string | undefined; tool: string }, text: string) {
  const plan = planTools(conversation({ toolChoice: { mode: "auto" } }), {
    toolParser: names.tool,
    reasoningParser: names.reasoning,
    startsInReasoning: false,
    engineConstraints: new Set(["structural_tag", "json_schema"]),
    constraint: { kind: "json_object" },
  });
  const parsing = plannedParsing(
    TEXT_ONLY,
    names,
    { plan, startsInReasoning: false },
    { constrained: true, isForced: false },
  )!;
  const { sink, answer } = foldEvents();
  const parser = parsing.parser(undefined);
  for (const char of text) parser.push(char, sink);
  parser.finish(sink);
  return answer();
}

/** In formats of channels markers count as tokens alone, and a text can't have one. */
const framed = (parser: string) => familiesOf(undefined, parser).unified !== undefined;

describe.each(FAMILIES.filter(({ parser }) => !framed(parser)).map((each) => [each.parser, each] as const))(
  "%s",
  (tool, { text: [open, weather, , , close], reasoning, thought, answer: [around, behind] = ["", ""] }) => {
    const call = open + weather + close;

    test("an answer that quotes a call makes none", () => {
      const answer = ` ${JSON.stringify({ quote: `Write ${call}`, list: [{ name: "get_weather", arguments: {} }] })}`;
      for (const before of ["", thought === undefined ? "" : `${thought[0]}Hm${thought[1]}`]) {
        expect(read({ reasoning, tool }, before + answer)).toMatchObject({
          toolCalls: [],
          content: expect.any(String),
        });
        expect(read({ reasoning, tool }, before + answer).content.trim()).toBe(answer.trim());
      }
      if (around !== "" && reasoning !== undefined)
        expect(read({ reasoning, tool }, around + answer + behind).content.trim()).toBe(answer.trim());
    });

    test("a call is one", () => {
      const { toolCalls, content } = read({ reasoning, tool }, call);
      expect([toolCalls.map(({ name }) => name), content.trim()]).toEqual([["get_weather"], ""]);
    });
  },
);
