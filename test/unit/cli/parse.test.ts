import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { demoModelFiles } from "../../../src/tokenizer/demo-model.ts";
import { demoTokenizer } from "../generation/demo-tokenizer.ts";
import { filter } from "./filter.ts";

const folder = mkdtempSync(join(tmpdir(), "collie-parse-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const QWEN3 = join(folder, "qwen3");
mkdirSync(QWEN3);
for (const [name, bytes] of await demoModelFiles()) writeFileSync(join(QWEN3, name), bytes);

const parse = (flags: readonly string[], lines: Parameters<typeof filter>[1]) =>
  filter(["parse", ...flags], lines, { XDG_CACHE_HOME: join(folder, "cache") });
const good = async (flags: readonly string[], lines: readonly object[]) => {
  const { lines: found, err, status } = await parse(flags, lines);
  expect([status, err, found.length]).toEqual([0, "", lines.length]);
  return found;
};

const QWEN = ["--tool-call-parser", "hermes", "--reasoning-parser", "qwen3"];
const MODEL = ["--model-path", QWEN3];
const TEXT = '<think>\nHm.\n</think>\n\nLook: <tool_call>\n{"name": "f", "arguments": {"a": 1.0}}\n</tool_call>';
const CALL = { index: 0, id: expect.stringMatching(/^call_\w{24}$/), name: "f", arguments: '{"a": 1.0}' };
const tools = [{ type: "function", function: { name: "f", parameters: { type: "object" } } }];

describe("text", () => {
  test("whole or in chunks, with and without tools", async () => {
    const lines = [
      { chunks: [TEXT], tools },
      { chunks: [...TEXT], tools },
      { chunks: [TEXT] },
      { chunks: [TEXT], tools, tool_choice: "none" },
      { chunks: [TEXT], tools, finish_reason: "length" },
      { chunks: ["Hm.</think>Yes"], starts_in_reasoning: true },
      { chunks: [] },
    ];
    const found = await good(QWEN, lines);
    for (const each of found.slice(0, 3)) {
      expect(each).toMatchObject({ tool_calls: [CALL], finish_reason: "tool_calls" });
      expect(String(each["reasoning"]).trim()).toBe("Hm.");
      expect(String(each["content"]).trim()).toBe("Look:");
    }
    expect(found[3]).toMatchObject({ tool_calls: [], finish_reason: "stop" });
    expect(found[3]!["content"]).toContain("<tool_call>");
    expect(found[4]).toMatchObject({ tool_calls: [CALL], finish_reason: "length" });
    expect(found[5]).toMatchObject({ content: "Yes", reasoning: "Hm.", finish_reason: "stop" });
    expect(found[6]).toEqual({ content: "", reasoning: "", tool_calls: [], finish_reason: "stop", events: [] });
  });

  test("events tell which chunk brought what, those behind the last one what was held back", async () => {
    const chunks = ["a<tool", "_cal", 'l>{"name": "f", "arguments": {"a"', ": 1}}</tool_call>", " <tool"];
    const [found] = await good(QWEN, [{ chunks, tools }]);
    const id = (found!["tool_calls"] as { id: string }[])[0]!.id;
    expect(found!["events"]).toEqual([
      { type: "text", text: "a", chunk: 0 },
      { type: "tool_start", call: 0, id, name: "f", kind: "function", chunk: 2 },
      { type: "tool_arguments", call: 0, text: '{"a"', chunk: 2 },
      { type: "tool_arguments", call: 0, text: ": 1}", chunk: 3 },
      { type: "tool_end", call: 0, chunk: 3 },
      { type: "text", text: " <tool", chunk: 5 },
    ]);
  });

  test("a call that is cut off is there as far as it goes, and does not count", async () => {
    const [found] = await good(QWEN, [{ chunks: ['<tool_call>{"name": "f", "arguments": {"a": '], tools }]);
    expect(found).toMatchObject({ tool_calls: [{ ...CALL, arguments: '{"a": ' }], finish_reason: "stop" });
  });

  test("a format that has reasoning in it, in which the prompt may end", async () => {
    const rest = "<|end|><|start|>assistant<|channel|>final<|message|>Yes";
    const [whole, open] = await good(
      ["--tool-call-parser", "openai"],
      [{ chunks: [`<|channel|>analysis<|message|>Hm${rest}`] }, { chunks: [`Hm${rest}`], starts_in_reasoning: true }],
    );
    for (const each of [whole, open]) expect(each).toMatchObject({ content: "Yes", reasoning: "Hm", tool_calls: [] });
  });

  test("models that always reason begin with it, unless the line says otherwise", async () => {
    const chunks = ["Hm.</think>Yes"];
    const found = await good(
      ["--reasoning-parser", "deepseek_r1"],
      [
        { chunks },
        { chunks, starts_in_reasoning: true },
        { chunks: ["<think>", ...chunks] },
        { chunks: ["Yes"], starts_in_reasoning: false },
      ],
    );
    for (const each of found.slice(0, 3)) expect(each).toMatchObject({ content: "Yes", reasoning: "Hm." });
    expect(found[3]).toMatchObject({ content: "Yes", reasoning: "" });
  });

  test("one call only, and calls that were forced", async () => {
    const two = `${TEXT}\n${TEXT.slice(TEXT.indexOf("<tool_call>"))}`;
    const named = { type: "function", function: { name: "f" } };
    const pythonic = ["--tool-call-parser", "pythonic"];
    const [single] = await good(QWEN, [{ chunks: [two], tools, parallel_tool_calls: false }]);
    expect(single!["tool_calls"]).toHaveLength(1);
    expect((await good(QWEN, [{ chunks: [two], tools }]))[0]!["tool_calls"]).toHaveLength(2);
    const [native] = await good(QWEN, [{ chunks: [TEXT], tools, tool_choice: named }]);
    expect(native).toMatchObject({ tool_calls: [CALL], finish_reason: "stop" });
    // families without a structural tag are made to answer in JSON
    const forced = await good(pythonic, [
      { chunks: ['{"a": ', "1.0}"], tools, tool_choice: named },
      { chunks: ['[{"name": "f", "parameters": {"a": 1.0}}]'], tools, tool_choice: "required" },
    ]);
    expect(forced[0]).toMatchObject({ content: "", tool_calls: [CALL], finish_reason: "stop" });
    expect(forced[1]).toMatchObject({ content: "", tool_calls: [CALL], finish_reason: "tool_calls" });
  });
});

test("what follows the one call that is wanted is left out, wherever the pieces end", async () => {
  const named = { type: "function", function: { name: "f" } };
  const one = { tools, parallel_tool_calls: false };
  const pieces = (text: string, more: object) => [
    { chunks: [text], ...more },
    { chunks: [...text], ...more },
  ];
  const call = TEXT.slice(TEXT.indexOf("<tool_call>"));
  for (const [flags, lines] of [
    [["--tool-call-parser", "qwen"], pieces(`${call}${call} tail`, one)],
    [["--tool-call-parser", "gemma4"], pieces('{"a": 1.0}{"b":2}', { tools, tool_choice: named })],
  ] as const) {
    const found = await good([...flags], lines);
    for (const each of found) expect(each).toMatchObject({ content: "", tool_calls: [CALL] });
  }
});

test("calls of a format that drops those of undeclared tools are told where none is declared", async () => {
  const text = '<|message_model|>f<|content_invoke_tool_json|>{"name":"f","args":{"a": 1.0}}<|end_message|>';
  const inkling = ["--tool-call-parser", "inkling"];
  const [found] = await good(inkling, [{ chunks: [text] }]);
  expect(found).toMatchObject({ content: "", tool_calls: [CALL], finish_reason: "tool_calls" });
});

describe("with a model", () => {
  test("the parsers are those of its template, for text as for ids", async () => {
    const ids = [...demoTokenizer.encode(TEXT)];
    const eos = demoTokenizer.tokenId("<|im_end|>")!;
    const found = await good(MODEL, [
      { chunks: [TEXT], tools },
      { ids: [ids], tools },
      { ids: ids.map((id) => [id]), tools },
      { ids: [[...ids, eos, ...ids]], tools },
    ]);
    for (const each of found) {
      expect(each).toMatchObject({ tool_calls: [CALL], finish_reason: "tool_calls" });
      expect(String(each["reasoning"]).trim()).toBe("Hm.");
      expect(String(each["content"]).trim()).toBe("Look:");
    }
  });

  test("a marker is the token, not its letters", async () => {
    const spelt = ["<tool", "_call", '>{"name": "f", "arguments": {}}</tool', "_call", ">"];
    const ids = spelt.map((text) => [...demoTokenizer.encode(text)]);
    const [found] = await good(MODEL, [{ ids, tools }]);
    expect(found).toMatchObject({ tool_calls: [], content: spelt.join(""), finish_reason: "stop" });
  });

  test("ids that the model does not have are a mistake in their line", async () => {
    const last = demoTokenizer.vocabSize - 1;
    const { lines, err, status } = await parse(MODEL, [
      { ids: [[1], [last + 1]] },
      { ids: [[2 ** 32 - 1]] },
      { ids: [[last]] },
    ]);
    expect([status, err]).toEqual([0, ""]);
    const message = (id: number) => ({
      error: { message: expect.stringContaining(`has no token ${id}, its vocabulary ends at ${last}`) },
    });
    expect(lines[0]).toMatchObject(message(last + 1));
    expect(lines[1]).toMatchObject(message(2 ** 32 - 1));
    expect(lines[2]).not.toHaveProperty("error");
  });

  test("a parser that is named comes first", async () => {
    const [found] = await good([...MODEL, "--tool-call-parser", "none"], [{ chunks: [TEXT], tools }]);
    expect(found).toMatchObject({ tool_calls: [] });
    expect(found!["content"]).toContain("<tool_call>");
  });
});

describe("mistakes", () => {
  test("lines have an error for an answer", async () => {
    const { lines, err, status } = await parse(QWEN, [
      "nonsense",
      {},
      { chunks: ["a"], ids: [[1]] },
      { ids: [[1]] },
      { chunks: "a" },
      { chunks: [1] },
      { chunks: ["a"], finish_reason: "tool_calls" },
      { chunks: ["a"], tools, tool_choice: { type: "function", function: { name: "g" } } },
      { chunks: ["a"] },
    ]);
    expect([err, status, lines.length]).toEqual(["", 0, 9]);
    const messages = lines.slice(0, 8).map(({ error }) => (error as { message: string }).message);
    expect(messages.map((message) => message.slice(0, 24))).toEqual(
      [
        "Line 1 is not valid JSON",
        "Either 'chunks' or 'ids'",
        "Either 'chunks' or 'ids'",
        "ids: --model-path is need",
        "Invalid 'chunks': expect",
        "Invalid 'chunks[0]': exp",
        "finish_reason: what the ",
        "tool_choice: there is no",
      ].map((message) => message.slice(0, 24)),
    );
    expect(lines[8]).toMatchObject({ content: "a" });
  });

  test("names that do not exist or do not go together, and nothing to parse by", async () => {
    expect(await parse(["--tool-call-parser", "nope"], [])).toMatchObject({
      status: 2,
      err: expect.stringContaining("There is no tool call parser 'nope'"),
    });
    expect((await parse(["--tool-call-parser", "qwen", "--reasoning-parser", "harmony"], [])).status).toBe(2);
    expect(await parse([], [])).toMatchObject({ status: 2, lines: [] });
  });
});
