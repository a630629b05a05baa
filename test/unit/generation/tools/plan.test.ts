import { describe, expect, test } from "bun:test";
import type { Constraint } from "../../../../src/engines/engine.ts";
import { InvalidRequestError, UnsupportedError } from "../../../../src/errors.ts";
import type { Conversation, ToolChoice, ToolDefinition } from "../../../../src/generation/conversation.ts";
import { type PlanOptions, planTools, ReasoningInTheWayError } from "../../../../src/generation/tools/plan.ts";
import { planPrompt, planPromptInTurns } from "../../../../src/generation/tools/plan-prompt.ts";
import { structuralTagParsers } from "../../../../src/generation/tools/structural-tag.ts";
import { opensReasoning } from "../../../../src/parsers/detect.ts";
import { parserNames, toolParserName } from "../../../../src/parsers/names.ts";
import { compileChatTemplate } from "../../../../src/template/chat-template.ts";
import { compileModelTemplate } from "../../../../src/template/model-template.ts";
import { demoTemplate } from "../demo-tokenizer.ts";

const tool = (name: string, parameters?: unknown): ToolDefinition => ({
  type: "function",
  name,
  strict: false,
  ...(parameters !== undefined && { parameters }),
});
const F = { type: "object", properties: { a: { type: "string" } }, required: ["a"] };
const G = { type: "object", properties: { b: { $ref: "#/$defs/B" } }, $defs: { B: { type: "integer" } } };

const conversation = (toolChoice: ToolChoice, more: Partial<Conversation> = {}): Conversation => ({
  messages: [{ role: "user", content: "Hi" }],
  tools: [tool("f", F), tool("g", G)],
  toolChoice,
  parallelToolCalls: true,
  addGenerationPrompt: true,
  continueFinalMessage: false,
  templateVariables: {},
  ...more,
});
const kinds = (...all: Constraint["kind"][]) => new Set(all);
const ALL = kinds("structural_tag", "json_schema", "regex", "grammar", "choice", "json_object");
const options = (more: Partial<PlanOptions> = {}): PlanOptions => ({
  toolParser: "qwen",
  reasoningParser: "qwen3",
  startsInReasoning: false,
  engineConstraints: ALL,
  ...more,
});
const schemaOf = (constraint: Constraint | undefined): unknown =>
  constraint?.kind === "json_schema" ? JSON.parse(constraint.schema) : constraint;
const FORCED: readonly ToolChoice[] = [
  { mode: "required" },
  { mode: "required", named: "g" },
  { mode: "required", allowed: ["g"] },
];

describe("modes", () => {
  const families = [...structuralTagParsers(), "pythonic", "json", "gemma4", "hermes", "qwen3_coder"];

  test.each(families)("%s: none and auto leave the model free", (toolParser) => {
    const none = planTools(conversation({ mode: "none" }), options({ toolParser }));
    expect(none).toMatchObject({ parse: false, output: "native", constraint: undefined, single: false });
    for (const choice of [{ mode: "auto" }, { mode: "auto", allowed: ["g"] }] as const) {
      const auto = planTools(conversation(choice), options({ toolParser, startsInReasoning: true }));
      expect(auto).toMatchObject({ parse: true, output: "native", constraint: undefined, single: false });
    }
  });

  test.each(structuralTagParsers())("%s: a call that must be made is one in its own format", (toolParser) => {
    for (const choice of FORCED) {
      const plan = planTools(conversation(choice), options({ toolParser, reasoningParser: undefined }));
      expect(plan).toMatchObject({ parse: true, output: "native", single: choice.named !== undefined });
      if (plan.constraint?.kind !== "structural_tag") throw new Error("no tag");
      const { type, format } = JSON.parse(plan.constraint.tag) as { type: string; format: unknown };
      expect(type).toBe("structural_tag");
      const text = JSON.stringify(format);
      expect(text.includes('"b"')).toBe(true);
      expect(text.includes('"a"')).toBe(choice.named === undefined && choice.allowed === undefined);
    }
  });

  test.each(["pythonic", "json", "gemma4", "passthrough", undefined])("%s: by a JSON schema", (toolParser) => {
    for (const choice of FORCED) {
      const plan = planTools(conversation(choice), options({ toolParser }));
      expect(plan.output).toEqual(choice.named === undefined ? "json" : { named: "g" });
      expect(plan.constraint?.kind).toBe("json_schema");
      expect(plan.parse).toBe(true);
    }
  });

  test("tags are for the parsers that there are", () => {
    const { tool: known } = parserNames();
    expect(structuralTagParsers().filter((name) => !known.includes(name))).toEqual([]);
  });

  test("other names of a parser mean the same", () => {
    const plan = (toolParser: string) =>
      planTools(conversation({ mode: "required" }), options({ toolParser })).constraint;
    expect(plan("hermes")).toEqual(plan("qwen"));
    expect(plan("qwen3_coder")).toEqual(plan("qwen_xml"));
  });

  test("without tools nothing is looked for; without a parser neither", () => {
    expect(planTools(conversation({ mode: "auto" }, { tools: [] }), options()).parse).toBe(false);
    expect(planTools(conversation({ mode: "auto" }), options({ toolParser: undefined })).parse).toBe(false);
    expect(planTools(conversation({ mode: "auto" }), options({ toolParser: "none" })).parse).toBe(false);
  });

  test("one call only", () => {
    const one = (choice: ToolChoice, more: Partial<PlanOptions> = {}) =>
      planTools(conversation(choice, { parallelToolCalls: false }), options(more));
    expect(one({ mode: "auto" }).single).toBe(true);
    const plan = one({ mode: "required" });
    expect(plan.single).toBe(true);
    expect(JSON.stringify(plan.constraint)).toContain('stop_after_first\\":true');
    expect(schemaOf(one({ mode: "required" }, { toolParser: undefined }).constraint)).toMatchObject({ maxItems: 1 });
  });
});

describe("JSON schemas", () => {
  const json = options({ engineConstraints: kinds("json_schema") });

  test("a list of calls, with the definitions of all tools at the top", () => {
    const plan = planTools(conversation({ mode: "required" }), json);
    expect(plan.output).toBe("json");
    expect(schemaOf(plan.constraint)).toEqual({
      type: "array",
      minItems: 1,
      items: {
        type: "object",
        anyOf: [
          { properties: { name: { type: "string", enum: ["f"] }, parameters: F }, required: ["name", "parameters"] },
          {
            properties: {
              name: { type: "string", enum: ["g"] },
              parameters: { type: "object", properties: { b: { $ref: "#/$defs/B" } } },
            },
            required: ["name", "parameters"],
          },
        ],
      },
      $defs: { B: { type: "integer" } },
    });
  });

  test("a named function: its parameters, or any object", () => {
    const named = (name: string, tools: ToolDefinition[]) =>
      schemaOf(planTools(conversation({ mode: "required", named: name }, { tools }), json).constraint);
    expect(named("g", [tool("f", F), tool("g", G)])).toEqual(G);
    expect(named("h", [tool("h")])).toEqual({ type: "object" });
    const custom: ToolDefinition = { type: "custom", name: "c", strict: false };
    expect(named("c", [custom])).toMatchObject({ properties: { input: { type: "string" } }, required: ["input"] });
  });

  test("definitions that clash, and references to elsewhere, are refused", () => {
    const with2 = (parameters: unknown) => () =>
      planTools(conversation({ mode: "required" }, { tools: [tool("g", G), tool("h", parameters)] }), json);
    expect(with2({ ...G })).not.toThrow();
    expect(with2({ ...G, $defs: { B: { type: "string" } } })).toThrow(InvalidRequestError);
    expect(with2({ properties: { a: { $ref: "#/properties/b" } } })).toThrow(InvalidRequestError);
    expect(with2({ properties: { a: { $ref: "#" } } })).toThrow(InvalidRequestError);
  });
});

describe("refused", () => {
  test.each(FORCED)("%j where the engine enforces nothing", (choice) => {
    expect(() => planTools(conversation(choice), options({ engineConstraints: kinds() }))).toThrow(UnsupportedError);
    expect(() => planTools(conversation(choice), options({ engineConstraints: kinds("regex") }))).toThrow(
      UnsupportedError,
    );
  });

  test("beside a pattern of the text, but not when no call must be made", () => {
    const constraint = { kind: "regex", pattern: "a+" } as const;
    for (const choice of FORCED)
      expect(() => planTools(conversation(choice), options({ constraint }))).toThrow(InvalidRequestError);
    expect(planTools(conversation({ mode: "auto" }), options({ constraint })).parse).toBe(true);
  });
});

describe("strict tools under auto", () => {
  const strict = (more: Partial<Conversation> = {}, over: Partial<PlanOptions> = {}) =>
    planTools(
      conversation({ mode: "auto" }, { tools: [{ ...tool("f", F), strict: true }, tool("g", G)], ...more }),
      options(over),
    );
  const formatOf = (constraint: Constraint | undefined) =>
    constraint?.kind === "structural_tag" ? JSON.stringify(JSON.parse(constraint.tag).format) : undefined;

  test.each(structuralTagParsers())(
    "%s: its calls are held to their schemas, those of the others are not",
    (toolParser) => {
      const plan = strict({}, { toolParser, reasoningParser: undefined });
      expect(plan).toMatchObject({
        parse: true,
        output: "native",
        otherwise: { output: "native", constraint: undefined },
      });
      const format = formatOf(plan.constraint);
      expect(format).toContain('"triggered_tags"');
      expect(format).toContain('"at_least_one":false');
      expect([format?.includes('"a"'), format?.includes('"b"')]).toEqual([true, false]);
    },
  );

  test("nothing where the family or the engine has no tag, or no tool is strict", () => {
    const none = [
      strict({}, { toolParser: "pythonic" }),
      strict({}, { toolParser: undefined }),
      strict({}, { engineConstraints: kinds("json_schema") }),
      strict({ tools: [tool("f", F)] }),
      strict({ toolChoice: { mode: "auto", allowed: ["g"] } }),
      strict({ toolChoice: { mode: "none" } }),
    ];
    for (const { constraint } of none) expect(constraint).toBeUndefined();
  });

  test("of one call, the answer ends behind it", () => {
    expect(formatOf(strict({ parallelToolCalls: false }).constraint)).toContain('"stop_after_first":true');
    expect(formatOf(strict().constraint)).not.toContain('"stop_after_first":true');
  });

  test("an answer in JSON stays free where no marker begins a call", () => {
    const plan = strict({}, { toolParser: "llama", reasoningParser: undefined });
    expect(formatOf(plan.constraint)).toContain(JSON.stringify(['{"name": "f", "parameters": ']));
  });
});

describe("tools beside a format of the answer", () => {
  const format = { kind: "json_schema", schema: '{"type":"object","properties":{"n":{"const":1.0}}}' } as const;
  const beside = (more: Partial<PlanOptions> = {}, over: Partial<Conversation> = {}) =>
    planTools(
      conversation({ mode: "auto" }, over),
      options({ constraint: format, reasoningParser: undefined, ...more }),
    );
  const FREE = ["pythonic", "xlam", "lfm2", "olmo3", "gemma4", "plamo3"];

  test.each([...structuralTagParsers(), ...FREE])("%s: a call, or an answer that satisfies it", (toolParser) => {
    const plan = beside({ toolParser });
    expect(plan).toMatchObject({ parse: true, output: "native", mustCall: false });
    // the format alone where the engine refuses the tag
    expect(plan.otherwise).toEqual({ output: "native", constraint: undefined });
    if (plan.constraint?.kind !== "structural_tag") throw new Error("no tag");
    expect(plan.constraint.tag).toContain(`"json_schema":${format.schema}`);
    expect(JSON.parse(plan.constraint.tag).format.elements.at(-1)).toMatchObject({ type: "or" });
  });

  test("every tool parser can, but those that have no format of their own", () => {
    const cannot = parserNames().tool.filter((toolParser) => beside({ toolParser }).constraint === undefined);
    const own = new Set(cannot.map(toolParserName));
    expect([...own]).toEqual(["json", undefined]);
  });

  test("the format alone where the engine takes no tags, or reasoning is open and nothing tells its end", () => {
    for (const more of [{ engineConstraints: kinds("json_schema") }, { startsInReasoning: true }])
      expect(beside(more)).toMatchObject({ parse: true, constraint: undefined });
    expect(beside({ startsInReasoning: true, engineWaitsForReasoning: true }).constraint).toBeDefined();
  });

  test("other constraints: any JSON object, a pattern, choices; a grammar or a tag stands alone", () => {
    const answer = (constraint: Constraint): unknown => {
      const plan = beside({ constraint }).constraint;
      return plan?.kind === "structural_tag" ? JSON.parse(plan.tag).format.elements[0].elements[0].elements[0] : plan;
    };
    expect(answer({ kind: "json_object" })).toEqual({ type: "json_schema", json_schema: { type: "object" } });
    expect(answer({ kind: "regex", pattern: "a+" })).toEqual({ type: "regex", pattern: "a+" });
    expect(answer({ kind: "choice", choices: ["a"] })).toEqual({ type: "const_string", value: "a" });
    expect(answer({ kind: "grammar", grammar: 'root ::= "a"' })).toBeUndefined();
    expect(answer({ kind: "structural_tag", tag: "{}" })).toBeUndefined();
  });

  test("without tools, or where none may be called, the format stands alone", () => {
    for (const over of [{ tools: [] }, { toolChoice: { mode: "none" } }] as const)
      expect(beside({}, over)).toMatchObject({ parse: false, constraint: undefined });
  });

  test.each(FORCED)("%j: the call, as without the format", (choice) => {
    const planned = (more: Partial<PlanOptions>) => planTools(conversation(choice), options(more));
    expect(planned({ constraint: format })).toEqual(planned({}));
    expect(planned({ constraint: format, toolParser: "pythonic" })).toEqual(planned({ toolParser: "pythonic" }));
  });

  test("one call, strict ones by their schemas", () => {
    const tagOf = (over: Partial<Conversation>) => JSON.stringify(beside({}, over).constraint);
    expect(tagOf({ parallelToolCalls: false })).toContain('stop_after_first\\":true');
    expect(tagOf({})).not.toContain('\\"a\\"');
    expect(tagOf({ tools: [{ ...tool("f", F), strict: true }] })).toContain('\\"a\\"');
  });

  test("in a format of channels the answer has its header, unless the engine may begin behind it", () => {
    const first = (engineWaitsForReasoning: boolean | undefined) => {
      const { constraint } = beside({ toolParser: "harmony", reasoningParser: "harmony", engineWaitsForReasoning });
      return JSON.parse((constraint as { tag: string }).tag).format.elements.at(-1).elements[0].elements[0].type;
    };
    expect([first(false), first(undefined), first(true)]).toEqual(["or", "or", "optional"]);
  });
});

describe("custom tools with a grammar", () => {
  const custom = (syntax: "lark" | "regex"): ToolDefinition => ({
    type: "custom",
    name: "c",
    strict: false,
    grammar: { syntax, definition: "abc" },
  });
  const plan = (
    syntax: "lark" | "regex",
    more: Partial<PlanOptions> = {},
    choice: ToolChoice = { mode: "required", named: "c" },
  ) => planTools(conversation(choice, { tools: [custom(syntax), tool("f", F)] }), options(more));
  const quiet = { reasoningParser: undefined } as const;

  test("named: its text under its grammar, with no other way", () => {
    expect(plan("lark")).toMatchObject({
      output: { text: "c" },
      constraint: { kind: "grammar", grammar: "abc" },
      single: true,
    });
    expect(plan("regex", quiet)).toMatchObject({
      output: { text: "c" },
      constraint: { kind: "regex", pattern: "abc" },
    });
    expect(plan("regex").constraint?.kind).toBe("structural_tag"); // reasoning passes
    for (const syntax of ["lark", "regex"] as const) expect(plan(syntax).otherwise).toBeUndefined();
  });

  test("the only tool, of which one call must be made, is as good as named", () => {
    const only = (parallelToolCalls: boolean) =>
      planTools(conversation({ mode: "required" }, { tools: [custom("lark")], parallelToolCalls }), options());
    expect(only(false).output).toEqual({ text: "c" });
    expect(only(true).output).toBe("native");
  });

  test("auto, and required among others: a tool of any text", () => {
    expect(plan("lark", {}, { mode: "auto" })).toMatchObject({ output: "native", constraint: undefined });
    expect(plan("lark", {}, { mode: "required" })).toMatchObject({
      output: "native",
      constraint: { kind: "structural_tag" },
    });
  });

  test("refused where nothing can enforce it", () => {
    expect(() => plan("lark", { engineConstraints: kinds("json_schema", "structural_tag") })).toThrow(UnsupportedError);
    expect(() => plan("regex", { ...quiet, engineConstraints: kinds("json_schema") })).toThrow(UnsupportedError);
    expect(() => plan("regex", { toolParser: "harmony", reasoningParser: "harmony" })).toThrow(UnsupportedError);
    expect(() => plan("lark", { startsInReasoning: true })).toThrow(ReasoningInTheWayError);
    expect(plan("lark", { startsInReasoning: true, engineWaitsForReasoning: true }).constraint?.kind).toBe("grammar");
  });
});

describe("another way where the engine refuses the tag", () => {
  const forced = (choice: ToolChoice, more: Partial<PlanOptions> = {}, tools = [tool("f", F), tool("g", G)]) =>
    planTools(conversation(choice, { tools }), options(more)).otherwise;

  test("is JSON, where it can be had", () => {
    expect(forced({ mode: "required" })).toMatchObject({ output: "json", constraint: { kind: "json_schema" } });
    expect(forced({ mode: "required", named: "g" })?.output).toEqual({ named: "g" });
    expect(forced({ mode: "required" }, { engineConstraints: kinds("structural_tag") })).toBeUndefined();
    expect(forced({ mode: "required" }, { startsInReasoning: true })).toBeUndefined();
    const clash = [tool("f", G), tool("g", { ...G, $defs: { B: {} } })];
    expect(forced({ mode: "required" }, {}, clash)).toBeUndefined();
  });
});

describe("reasoning", () => {
  const tagOf = (more: Partial<PlanOptions>): string => {
    const { constraint } = planTools(conversation({ mode: "required" }), options(more));
    return constraint?.kind === "structural_tag" ? constraint.tag : "";
  };

  test("a tag lets it pass, unless the engine does so by itself", () => {
    expect(JSON.parse(tagOf({})).format.elements[0].type).toBe("optional");
    const first = (more: Partial<PlanOptions>) =>
      JSON.parse(tagOf({ startsInReasoning: true, ...more })).format.elements[0];
    const open = { type: "tag", begin: "", end: "</think>" };
    expect(first({ engineWaitsForReasoning: false })).toMatchObject(open);
    // what fits either kind of engine
    expect(first({})).toMatchObject({ type: "optional", content: { elements: [open, { type: "regex" }] } });
    expect(first({ startsInReasoning: false, reasoningIsOver: true }).type).toBe("tags_with_separator");
    expect(JSON.parse(tagOf({ startsInReasoning: true, engineWaitsForReasoning: true })).format.elements[0].type).toBe(
      "tags_with_separator",
    );
  });

  test("JSON does not go with it", () => {
    const json = { engineConstraints: kinds("json_schema"), startsInReasoning: true };
    for (const choice of FORCED) {
      expect(() => planTools(conversation(choice), options(json))).toThrow(ReasoningInTheWayError);
      expect(planTools(conversation(choice), options({ ...json, engineWaitsForReasoning: true })).parse).toBe(true);
    }
    // open, and how it ends is not known: no tag could let it pass
    expect(() => tagOf({ startsInReasoning: true, reasoningParser: undefined })).toThrow(ReasoningInTheWayError);
  });

  const forced = conversation({ mode: "required" });
  const planned = (source: string, more: Partial<PlanOptions> = {}) => {
    const { startsInReasoning: _, ...rest } = options({ engineConstraints: kinds("json_schema"), ...more });
    return planPrompt(forced, compileChatTemplate(source, {}), {
      ...rest,
      opensReasoning: (text) => opensReasoning(text, "qwen3"),
    });
  };
  const SWITCHED =
    "{{ messages[0].content }}{% if thinking is not defined or thinking %}<think>{% else %}<think></think>{% endif %}";

  test("it is switched off for a JSON schema where the template can", () => {
    const found = planned(SWITCHED);
    expect(found).toMatchObject({ text: "Hi<think></think>", startsInReasoning: false, plan: { output: "json" } });
    expect(planned(SWITCHED, { engineConstraints: ALL })).toMatchObject({ text: "Hi<think>", startsInReasoning: true });
    expect(() => planned("{{ messages[0].content }}<think>")).toThrow(ReasoningInTheWayError);
  });

  test("in turns it is planned in the same way", async () => {
    const { startsInReasoning: _, ...rest } = options({ engineConstraints: kinds("json_schema") });
    const inTurns = (source: string) =>
      planPromptInTurns(forced, compileChatTemplate(source, {}), {
        ...rest,
        opensReasoning: (text) => opensReasoning(text, "qwen3"),
      });
    expect(await inTurns(SWITCHED)).toEqual(planned(SWITCHED));
    await expect(inTurns("{{ messages[0].content }}<think>")).rejects.toThrow(ReasoningInTheWayError);
    await expect(inTurns("{{ raise_exception('no') }}")).rejects.toThrow("no");
  });

  test("Qwen 3: nothing is open, and the tag has the form of its template", () => {
    const { startsInReasoning: _, ...rest } = options();
    const found = planPrompt(forced, compileModelTemplate(demoTemplate!), {
      ...rest,
      opensReasoning: (text) => opensReasoning(text, "qwen3"),
    });
    expect(found.startsInReasoning).toBe(false);
    expect(found.text).toEndWith("<|im_start|>assistant\n");
    expect(JSON.stringify(found.plan.constraint)).toContain("<tool_call>");
  });
});
