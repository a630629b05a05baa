import { describe, expect, test } from "bun:test";
import { chatTools } from "../../../../src/apis/chat/tool-choice.ts";
import { GatewayError } from "../../../../src/errors.ts";
import { toolDeclaration } from "../../../../src/generation/tools/declaration.ts";
import { checked } from "./requests.ts";

const F = {
  type: "function",
  function: { name: "f", description: "F.", parameters: { type: "object" }, strict: true },
};
const G = { type: "function", function: { name: "g.h-i_1" } };
const read = (fields: Record<string, unknown>, raw?: string) => chatTools(checked(fields), raw);

function refusal(fields: Record<string, unknown>): { status: number; param: string | undefined } {
  try {
    read(fields);
  } catch (error) {
    if (error instanceof GatewayError) return { status: error.status, param: error.param };
    throw error;
  }
  throw new Error("it was taken");
}

const grammar = (format: object) => ({ type: "custom", custom: { name: "c", format } });

describe("tools", () => {
  test.each([
    { type: "grammar", syntax: "lark", definition: "start: A" },
    { type: "grammar", grammar: { syntax: "lark", definition: "start: A" } },
  ])("a custom tool with a grammar: %j", (format) => {
    const [found] = read({ tools: [grammar(format)] }).tools;
    expect(found).toEqual({
      type: "custom",
      name: "c",
      strict: false,
      grammar: { syntax: "lark", definition: "start: A" },
    });
    expect(toolDeclaration(found!)).toMatchObject({
      function: { name: "c", description: "The input must follow this Lark grammar:\nstart: A" },
    });
  });

  test("functions as they were sent", () => {
    expect(read({ tools: [F, G] })).toEqual({
      tools: [
        {
          type: "function",
          name: "f",
          description: "F.",
          parameters: { type: "object" },
          strict: true,
          declaration: F,
        },
        { type: "function", name: "g.h-i_1", strict: false, declaration: G },
      ],
      toolChoice: { mode: "auto" },
      parallelToolCalls: true,
    });
    const nulls = { type: "function", function: { name: "f", description: null, parameters: null, strict: null } };
    expect(read({ tools: [nulls] }).tools).toEqual([
      { type: "function", name: "f", strict: false, declaration: nulls },
    ]);
  });

  test.each([{}, { tools: null }, { tools: [] }])("none: %j", (fields) => {
    const none = { tools: [], toolChoice: { mode: "none" }, parallelToolCalls: true };
    expect(read(fields)).toEqual((fields.tools ? { ...none, emptyToolList: true } : none) as never);
  });

  test("the older functions", () => {
    const { tools, toolChoice } = read({ functions: [F.function], function_call: { name: "f" } });
    expect(tools[0]).toMatchObject({ name: "f", declaration: { type: "function", function: F.function } });
    expect(toolChoice).toEqual({ mode: "required", named: "f" });
    for (const word of ["none", "auto"] as const)
      expect(read({ functions: [F.function], function_call: word }).toolChoice).toEqual({ mode: word });
  });

  test("custom tools that take any text are told as functions with one text", () => {
    const { tools } = read({
      tools: [{ type: "custom", custom: { name: "c", description: "C.", format: { type: "text" } } }],
    });
    expect(tools).toEqual([{ type: "custom", name: "c", description: "C.", strict: false }]);
    expect(toolDeclaration(tools[0]!)).toMatchObject({
      type: "function",
      function: { name: "c", description: "C.", parameters: { required: ["input"] } },
    });
  });

  test("numbers and the order of keys are those of the request's text", () => {
    const raw =
      '{"tools": [{"type": "function", "function": {"name": "f", "parameters": {"b": 1.0, "2": 1, "1": 12345678901234567890}}}]}';
    const [tool] = read(JSON.parse(raw) as Record<string, unknown>, raw).tools;
    const declared = (tool!.declaration as Map<string, Map<string, Map<string, unknown>>>)
      .get("function")!
      .get("parameters")!;
    expect([...declared.keys()]).toEqual(["b", "2", "1"]);
    expect(declared.get("b")).toEqual({ value: 1 });
    expect(declared.get("1")).toBe(12345678901234567890n);
  });

  test.each<[string, Record<string, unknown>, string]>([
    ["no type", { tools: [{}] }, "tools[0].type"],
    ["no function", { tools: [F, { type: "function" }] }, "tools[1].function"],
    ["no name", { tools: [F, G, { type: "function", function: {} }] }, "tools[2].function.name"],
    ["a name that is empty", { tools: [{ type: "function", function: { name: "" } }] }, "tools[0].function.name"],
    ["a name with a space", { tools: [{ type: "function", function: { name: "a b" } }] }, "tools[0].function.name"],
    ["a long name", { tools: [{ type: "function", function: { name: "a".repeat(129) } }] }, "tools[0].function.name"],
    [
      "parameters as text",
      { tools: [{ type: "function", function: { name: "f", parameters: "{}" } }] },
      "tools[0].function.parameters",
    ],
    ["another type", { tools: [{ type: "web_search" }] }, "tools[0].type"],
    ["a custom tool without a name", { tools: [{ type: "custom" }] }, "tools[0].custom"],
    ["a custom tool of another format", { tools: [grammar({ type: "json" })] }, "tools[0].custom.format.type"],
    [
      "a grammar without a syntax",
      { tools: [grammar({ type: "grammar", grammar: {} })] },
      "tools[0].custom.format.grammar.syntax",
    ],
    [
      "a grammar of another syntax",
      { tools: [grammar({ type: "grammar", syntax: "gbnf", definition: "x" })] },
      "tools[0].custom.format.syntax",
    ],
    [
      "a grammar without a definition",
      { tools: [grammar({ type: "grammar", grammar: { syntax: "lark", definition: " " } })] },
      "tools[0].custom.format.grammar.definition",
    ],
    ["too many", { tools: Array(1025).fill(F) }, "tools"],
    ["tools and functions", { tools: [F], functions: [F.function] }, "functions"],
    ["a function without a name", { functions: [{}] }, "functions[0].name"],
  ])("%s", (_, fields, param) => {
    expect(refusal(fields)).toEqual({ status: 400, param });
  });
});

describe("tool_choice", () => {
  const named = { type: "function", function: { name: "f" } };
  const allowed = (mode: unknown, tools: unknown = [named]) => ({
    type: "allowed_tools",
    allowed_tools: { mode, tools },
  });

  test.each<[unknown, unknown]>([
    [undefined, { mode: "auto" }],
    [null, { mode: "auto" }],
    ["auto", { mode: "auto" }],
    ["none", { mode: "none" }],
    ["required", { mode: "required" }],
    [named, { mode: "required", named: "f" }],
    [
      { type: "function", name: "f" },
      { mode: "required", named: "f" },
    ],
    [
      { type: "custom", custom: { name: "f" } },
      { mode: "required", named: "f" },
    ],
    [allowed("auto"), { mode: "auto", allowed: ["f"] }],
    [allowed("required", [named, named]), { mode: "required", allowed: ["f"] }],
    [
      { type: "allowed_tools", mode: "required", tools: [{ type: "function", name: "f" }] },
      { mode: "required", allowed: ["f"] },
    ],
  ])("%j", (given, wanted) => {
    expect(read({ tools: [F, G], tool_choice: given }).toolChoice).toEqual(wanted as never);
  });

  test.each<[unknown, string]>([
    ["any", "tool_choice"],
    [5, "tool_choice"],
    [{}, "tool_choice.type"],
    [{ type: "web_search" }, "tool_choice.type"],
    [{ type: "function" }, "tool_choice.function.name"],
    [{ type: "function", function: { name: "nope" } }, "tool_choice"],
    [allowed("none"), "tool_choice.allowed_tools.mode"],
    [allowed("auto", []), "tool_choice.allowed_tools.tools"],
    [allowed("auto", [5]), "tool_choice.allowed_tools.tools[0].function.name"],
    [allowed("auto", [named, { type: "function", function: { name: "nope" } }]), "tool_choice"],
  ])("%j is refused", (given, param) => {
    expect(refusal({ tools: [F, G], tool_choice: given })).toEqual({ status: 400, param });
  });

  test("without tools only what asks for none or leaves it open", () => {
    for (const given of ["none", "auto"]) expect(read({ tool_choice: given }).toolChoice).toEqual({ mode: "none" });
    for (const given of ["required", named, allowed("required")])
      expect(refusal({ tool_choice: given })).toEqual({ status: 400, param: "tool_choice" });
    expect(refusal({ function_call: { name: "f" } })).toEqual({ status: 400, param: "function_call" });
  });

  test("parallel calls", () => {
    expect(read({ tools: [F], parallel_tool_calls: false }).parallelToolCalls).toBe(false);
    expect(read({ tools: [F], parallel_tool_calls: null }).parallelToolCalls).toBe(true);
  });
});
