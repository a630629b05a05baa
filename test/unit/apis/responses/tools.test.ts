import { describe, expect, test } from "bun:test";
import type { Loose } from "../../../../src/apis/responses/schema.ts";
import { responseToolChoice, responseTools, shownTools } from "../../../../src/apis/responses/tools.ts";
import { toolDeclaration } from "../../../../src/generation/tools/declaration.ts";
import { parseLossless } from "../../../../src/template/lossless-json.ts";

const fn = (name: string, more: Loose = {}): Loose => ({
  type: "function",
  name,
  parameters: { type: "object" },
  ...more,
});
const names = (tools: readonly Loose[]) => responseTools(tools).definitions.map(({ name }) => name);

describe("definitions", () => {
  test("a function in the form that templates know, its numbers and keys as sent", () => {
    const text = `[{"parameters":{"type":"object","properties":{"x":{"maximum":1.0,"2":3,"1":4}}},"strict":true,"name":"f","description":"does","type":"function"}]`;
    const { definitions } = responseTools(JSON.parse(text) as Loose[], parseLossless(text) as unknown[]);
    expect(definitions).toMatchObject([{ type: "function", name: "f", description: "does", strict: true }]);
    const declared = toolDeclaration(definitions[0]!) as Map<string, Map<string, Map<string, unknown>>>;
    expect([...declared.keys()]).toEqual(["type", "function"]);
    expect([...declared.get("function")!.keys()]).toEqual(["name", "description", "parameters"]);
    const x = (declared.get("function")!.get("parameters")!.get("properties") as Map<string, Map<string, unknown>>).get(
      "x",
    )!;
    expect([...x.keys()]).toEqual(["maximum", "2", "1"]);
    expect(x.get("maximum")).not.toBe(1); // a float
  });

  test("null and absent are the same; strict is not asked for by default", () => {
    const [tool] = responseTools([
      { type: "function", name: "f", description: null, parameters: null, strict: null },
    ]).definitions;
    expect(tool).toMatchObject({ name: "f", strict: false });
    expect(tool).not.toHaveProperty("parameters");
    expect(tool).not.toHaveProperty("description");
  });

  test("custom tools with and without a grammar", () => {
    const lark = { type: "grammar", syntax: "lark", definition: "start: /a+/" };
    const { definitions } = responseTools([
      { type: "custom", name: "a" },
      { type: "custom", name: "b", description: "B", format: lark },
      { type: "custom", name: "c", format: { type: "text" } },
    ]);
    expect(definitions).toEqual([
      { type: "custom", name: "a", strict: false },
      {
        type: "custom",
        name: "b",
        strict: false,
        description: "B",
        grammar: { syntax: "lark", definition: "start: /a+/" },
      },
      { type: "custom", name: "c", strict: false },
    ]);
  });

  test("what runs on others' servers is left out, and said", () => {
    const { definitions, ignored } = responseTools([
      { type: "web_search" },
      fn("f"),
      { type: "file_search", vector_store_ids: [] },
      { type: "mcp", server_label: "docs", server_url: "https://example.com" },
      { type: "something_new" },
    ]);
    expect(definitions.map(({ name }) => name)).toEqual(["f"]);
    expect(ignored).toEqual(["web_search", "file_search", "mcp", "something_new"]);
  });

  test.each<[string, Loose[], string]>([
    ["no type", [{ name: "f" }], "tools[0].type"],
    ["no name", [fn("f"), { type: "function" }], "tools[1].name"],
    ["a name that is none", [fn("a b")], "tools[0].name"],
    ["parameters that are no object", [fn("f", { parameters: [] })], "tools[0].parameters"],
    [
      "a grammar without a text",
      [{ type: "custom", name: "c", format: { type: "grammar", syntax: "lark" } }],
      "tools[0].format.definition",
    ],
    ["a namespace without tools", [{ type: "namespace", name: "n" }], "tools[0].tools"],
    [
      "a tool of a namespace without a name",
      [{ type: "namespace", name: "n", tools: [{ type: "function" }] }],
      "tools[0].tools[0].name",
    ],
    ["an mcp server without an address", [{ type: "mcp", server_label: "a" }], "tools[0].server_url"],
    [
      "an mcp server with two",
      [{ type: "mcp", server_label: "a", server_url: "x", connector_id: "y" }],
      "tools[0].server_url",
    ],
    ["an mcp server without a label", [{ type: "mcp", server_url: "x" }], "tools[0].server_label"],
    [
      "an mcp server twice",
      [
        { type: "mcp", server_label: "a", server_url: "x" },
        { type: "mcp", server_label: "a", server_url: "y" },
      ],
      "tools[1].server_label",
    ],
  ])("%s is refused", (_, tools, param) => {
    expect(() => responseTools(tools)).toThrow(expect.objectContaining({ status: 400, param }));
  });
});

describe("namespaces", () => {
  const mail: Loose = {
    type: "namespace",
    name: "mail",
    description: "Mail",
    tools: [fn("send"), { type: "custom", name: "raw" }],
  };

  test("become one list of names, and names become namespaces again", () => {
    const tools = responseTools([fn("send"), mail]);
    expect(tools.definitions.map(({ name, type }) => [name, type])).toEqual([
      ["send", "function"],
      ["mail__send", "function"],
      ["mail__raw", "custom"],
    ]);
    expect(tools.origin("mail__send")).toEqual({ name: "send", namespace: "mail" });
    expect(tools.origin("send")).toEqual({ name: "send" });
    expect(tools.modelName({ name: "send", namespace: "mail" })).toBe("mail__send");
    expect(tools.modelName({ name: "gone", namespace: "old" })).toBe("old__gone");
  });

  test("names stay unique and short enough", () => {
    const long = "x".repeat(100);
    const spaces = ["a", "b"].map(
      (last): Loose => ({ type: "namespace", name: long + last, tools: [fn("f".repeat(40) + last)] }),
    );
    const found = names([fn("mail__send"), mail, ...spaces]);
    expect(new Set(found).size).toBe(found.length);
    expect(found.slice(0, 2)).toEqual(["mail__send", "mail__send_2"]);
    for (const name of found) expect(name).toMatch(/^[a-zA-Z0-9_.-]{1,128}$/);
    const same = { type: "namespace", name: "n".repeat(126), tools: [fn("aa"), fn("bb"), fn("cc")] };
    const cut = names([same]);
    expect(new Set(cut).size).toBe(3);
    for (const name of cut) expect(name.length).toBeLessThanOrEqual(128);
  });
});

describe("tool_choice", () => {
  const tools = responseTools([
    fn("f"),
    fn("g"),
    { type: "namespace", name: "n", tools: [fn("h"), fn("g")] },
    { type: "custom", name: "c" },
  ]);
  test.each<[string | Loose | null | undefined, unknown]>([
    [undefined, { mode: "auto" }],
    [null, { mode: "auto" }],
    ["none", { mode: "none" }],
    ["required", { mode: "required" }],
    [
      { type: "function", name: "f" },
      { mode: "required", named: "f" },
    ],
    [
      { type: "function", name: "g" },
      { mode: "required", named: "g" },
    ],
    [
      { type: "function", name: "h" },
      { mode: "required", named: "n__h" },
    ],
    [
      { type: "function", name: "g", namespace: "n" },
      { mode: "required", named: "n__g" },
    ],
    [
      { type: "custom", name: "c" },
      { mode: "required", named: "c" },
    ],
    [
      { type: "allowed_tools", mode: "auto", tools: [{ type: "function", name: "f" }, { type: "web_search" }] },
      { mode: "auto", allowed: ["f"] },
    ],
    [
      { type: "allowed_tools", mode: "required", tools: [{ type: "namespace", name: "n" }] },
      { mode: "required", allowed: ["n__h", "n__g"] },
    ],
    [{ type: "allowed_tools", mode: "auto", tools: [{ type: "web_search" }] }, { mode: "none" }],
  ])("%j", (given, expected) => {
    expect(responseToolChoice(given, tools)).toEqual(expected as never);
  });

  test.each<[string | Loose, string]>([
    ["some", "tool_choice"],
    [{ type: "function" }, "tool_choice.name"],
    [{ type: "function", name: "x" }, "tool_choice.name"],
    [{ type: "function", name: "f", namespace: "n" }, "tool_choice.name"],
    [{ type: "web_search" }, "tool_choice.type"],
    [{ type: "allowed_tools", mode: "maybe", tools: [] }, "tool_choice.mode"],
    [{ type: "allowed_tools", mode: "auto", tools: [] }, "tool_choice.tools"],
    [{ type: "allowed_tools", mode: "required", tools: [{ type: "web_search" }] }, "tool_choice.tools"],
  ])("%j is refused", (given, param) => {
    expect(() => responseToolChoice(given, tools)).toThrow(expect.objectContaining({ status: 400, param }));
  });

  test("without tools nothing can be required", () => {
    const none = responseTools([{ type: "web_search" }]);
    expect(responseToolChoice("auto", none)).toEqual({ mode: "none" });
    expect(() => responseToolChoice("required", none)).toThrow(expect.objectContaining({ param: "tool_choice" }));
  });
});

test("functions are shown with all of their keys, others as sent", () => {
  expect(
    shownTools([
      { type: "function", name: "f" },
      { type: "web_search", filters: null },
    ]),
  ).toEqual([
    { type: "function", name: "f", description: null, parameters: null, strict: null },
    { type: "web_search", filters: null },
  ]);
});

test("a choice of very many names looks at each tool once", () => {
  const tools = responseTools(Array.from({ length: 100 }, (_, i) => fn(`f${i}`)));
  let looks = 0;
  const counted = {
    ...tools,
    origin: (name: string) => {
      looks++;
      return tools.origin(name);
    },
  };
  const allowed = Array.from({ length: 10_000 }, (_, i) => ({ type: "function", name: `f${i % 90}` }));
  const choice = responseToolChoice({ type: "allowed_tools", mode: "auto", tools: allowed }, counted);
  expect(choice.allowed).toHaveLength(90);
  expect(looks).toBe(100);
});
