/** Damaged calls: what is no call comes out as text, and nothing behind it is held or lost, whatever the pieces. */
import { describe, expect, test } from "bun:test";
import { foldEvents, type ParsedAnswer } from "../../../src/parsers/events.ts";
import { createOutputParser, type ParserOptions } from "../../../src/parsers/parser.ts";

const OPTIONS: ParserOptions = {
  tools: [{ name: "run", parameters: { type: "object", properties: { cmd: { type: "string" } } } }],
  startsInReasoning: false,
  singleTokenMarkers: new Set(),
  parseTools: true,
};

function readAs(tool: string, pieces: readonly string[], options: Partial<ParserOptions> = {}): ParsedAnswer {
  const parser = createOutputParser(undefined, tool, { ...OPTIONS, ...options });
  const { sink, answer } = foldEvents();
  for (const piece of pieces) parser.push(piece, sink);
  parser.finish(sink);
  return answer();
}

/** Reads a text whole, and by characters: both say the same. */
function read(tool: string, text: string, options: Partial<ParserOptions> = {}): ParsedAnswer {
  const whole = readAs(tool, [text], options);
  expect({ text, ...readAs(tool, [...text], options) }).toEqual({ text, ...whole });
  return whole;
}

const PROSE = " and then quite a lot of it, on and on.".repeat(40);
const unfinished = (args: string) => [{ name: "run", id: undefined, arguments: args, complete: false }];

describe("a key without its closer", () => {
  test.each([
    ["glm45_moe", "", ["<tool_call>run\n", "</tool_call>"]],
    ["glm47_moe", "", ["<tool_call>run", "</tool_call>"]],
    ["longcat", "longcat_", ["<longcat_tool_call>run\n", "</longcat_tool_call>"]],
    ["hy_v3", "", ["<tool_calls><tool_call>run<tool_sep>\n", "</tool_call></tool_calls>"]],
  ] as const)("%s: ends the call at the next marker", (tool, prefix, [open, close]) => {
    const pair = `<${prefix}arg_key>cmd\n<${prefix}arg_value>a</${prefix}arg_value>\n`;
    const { content, toolCalls } = read(tool, `${open}${pair}${close}${PROSE}`);
    expect(content).toBe(`${pair}${PROSE}`);
    expect(toolCalls).toEqual(unfinished(""));
  });
  test("ends the call when it is too long, without waiting for a marker", () => {
    const text = `<tool_call>run\n<arg_key>cmd${PROSE}`;
    expect(read("glm45_moe", text)).toMatchObject({ content: text.slice("<tool_call>run\n".length) });
    const parser = createOutputParser(undefined, "glm45_moe", OPTIONS);
    const { sink, answer } = foldEvents();
    parser.push(text, sink);
    expect(answer().content.length).toBeGreaterThan(PROSE.length - 10);
  });
  test("that the answer ends in is in the arguments as far as it goes", () => {
    expect(read("glm45_moe", "<tool_call>run\n<arg_key>cm").toolCalls).toEqual(unfinished('{"cm'));
    expect(read("glm45_moe", "<tool_call>run\n<arg_key>cmd</arg_key>\n<arg_v").toolCalls).toEqual(unfinished('{"cmd"'));
    expect(read("qwen_xml", "<tool_call>\n<function=run>\n<parameter=cm").toolCalls).toEqual(unfinished('{"cm'));
    expect(read("gemma4", "<|tool_call>call:run{a:1,cm").toolCalls).toEqual(unfinished('{"a":1,"cm'));
  });
  test.each([
    ["hermes", '<tool_call>{"name": "run", "argu: {}}</tool_call>'],
    ["phi4_mini", 'functools[{"name": "run", "argu: {}}]'],
    ["mistral", '[TOOL_CALLS] [{"name": "run", "argu: {}}]'],
    ["cohere", '<|START_ACTION|>[{"tool_name": "run", "argu: {}}]<|END_ACTION|>'],
    ["llama", '<|python_tag|>{"name": "run", "argu: {}}'],
  ])("%s: an object with one is text", (tool, damaged) => {
    for (const behind of ["", " ok", PROSE])
      expect(read(tool, damaged + behind)).toEqual({ content: damaged + behind, reasoning: "", toolCalls: [] });
  });
  test("the end marker shows it at once", () => {
    const parser = createOutputParser(undefined, "hermes", OPTIONS);
    const { sink, answer } = foldEvents();
    const text = '<tool_call>{"name": "run", "argu: {}}</tool_call> ok';
    for (const character of text) parser.push(character, sink);
    expect(answer().content).toBe(text);
  });
});

describe("arguments of Kimi that are no object", () => {
  const call = (args: string) =>
    `<|tool_calls_section_begin|><|tool_call_begin|>functions.run:0<|tool_call_argument_begin|>${args}<|tool_call_end|><|tool_calls_section_end|>`;
  test.each(['"city": "Oslo"}', "5", "[1]", "true", "nullx"])("%s: no call, all of it text", (args) => {
    expect(read("kimik2", call(args))).toEqual({ content: call(args), reasoning: "", toolCalls: [] });
  });
  test.each([
    ["null", "{}"],
    ['""', "{}"],
    ["", "{}"],
    ['"{\\"cmd\\":1.0}"', '{"cmd":1.0}'],
  ])("%s: %s", (args, expected) => {
    const id = "functions.run:0";
    expect(read("kimik2", call(args))).toEqual({
      content: "",
      reasoning: "",
      toolCalls: [{ name: "run", id, arguments: expected, complete: true }],
    });
  });
});

test("what follows arguments in a string keeps its white space", () => {
  for (const [written, expected] of [
    ["{} x", "{} x"],
    ["{}  x y ", "{}  x y"],
  ]) {
    const { toolCalls } = read("hermes", `<tool_call>{"name":"run","arguments":"${written}"}</tool_call>`);
    expect(toolCalls).toEqual(unfinished(expected!));
  }
});

describe("ids that models write", () => {
  const object = (id: string) => `{"${id}": "0", "name": "run", "arguments": {}}`;
  test.each([
    ["hermes", `<tool_call>${object("id")}</tool_call>`],
    ["cohere", `<|START_ACTION|>[${object("tool_call_id")}]<|END_ACTION|>`],
    ["json", object("id")],
  ])("%s: dropped", (tool, text) => {
    expect(read(tool, text).toolCalls).toEqual([{ name: "run", id: undefined, arguments: "{}", complete: true }]);
  });
  test("Mistral: kept", () => {
    const text = '[TOOL_CALLS] [{"id": "a1B2c3D4e", "name": "run", "arguments": {}}]';
    expect(read("mistral", text).toolCalls[0]?.id).toBe("a1B2c3D4e");
  });
});

describe("inkling", () => {
  const call = (name: string, inner = name) =>
    `<|message_model|>${name}<|content_invoke_tool_json|>{"name":"${inner}","args":{}}<|end_message|>`;
  test("without declared tools all calls are told", () => {
    expect(read("inkling", call("nope"), { tools: [] }).toolCalls).toMatchObject([{ name: "nope", arguments: "{}" }]);
    expect(read("inkling", call("nope")).toolCalls).toEqual([]);
  });
  test("words of a message without a kind of content are text", () => {
    for (const end of ["", "<|end_message|>", "<|content_model_end_sampling|>", "<|message_model|>"])
      expect(read("inkling", `<|message_model|>hello you${end}`).content).toBe("hello you");
    expect(read("inkling", `<|message_model|>${PROSE}`).content).toBe(PROSE);
    expect(read("inkling", "<|message_model|>someone<|content_text|>hi<|end_message|>").content).toBe("hi");
  });
  test("a frame for an undeclared tool that holds no object is text", () => {
    const text = "nope<|content_invoke_tool_json|>what? ";
    expect(read("inkling", `<|message_model|>${text}<|end_message|>`)).toMatchObject({ content: text, toolCalls: [] });
  });
});

describe("an escaped character in two halves is never told by halves", () => {
  const lone = /\\ud[89ab][0-9a-f]{2}(?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f]{2})\\ud[c-f]/i;
  test.each([
    ["as it stands", '{"a":"\\ud83d\\ude00"}', '{"a":"\\ud83d\\ude00"}'],
    ["written in a string", '"{\\"a\\":\\"\\\\ud83d\\\\ude00\\"}"', '{"a":"\\ud83d\\ude00"}'],
    ["split over two levels", '"{\\"a\\":\\"\\ud83d\\\\ude00\\"}"', '{"a":"\\ud83d\\ude00"}'],
  ])("%s", (_, args, expected) => {
    const parser = createOutputParser(undefined, "hermes", OPTIONS);
    const { sink, answer } = foldEvents();
    const deltas: string[] = [];
    const toolArguments = (index: number, delta: string) => {
      deltas.push(delta);
      sink.toolArguments(index, delta);
    };
    for (const c of `<tool_call>{"name":"run","arguments":${args}}</tool_call>`)
      parser.push(c, { ...sink, toolArguments });
    parser.finish(sink);
    expect(answer().toolCalls[0]).toMatchObject({ arguments: expected, complete: true });
    expect(deltas.filter((delta) => lone.test(delta) || !delta.isWellFormed())).toEqual([]);
  });
  test("one that stays alone is told as it is", () => {
    const text = '<tool_call>{"name":"run","arguments":{"a":"\\ud83d\\ud83d\\ude00\\ud83dx"}}</tool_call>';
    expect(read("hermes", text).toolCalls[0]?.arguments).toBe('{"a":"\\ud83d\\ud83d\\ude00\\ud83dx"}');
  });
});

describe("thoughts and what may be a call", () => {
  /** What is told, in its order, in pieces of one character. */
  function told(text: string, tool: string, options: Partial<ParserOptions> = {}): string {
    const parser = createOutputParser("qwen3", tool, { ...OPTIONS, ...options });
    let all = "";
    const { sink } = foldEvents();
    const telling = {
      ...sink,
      text: (delta: string) => {
        all += delta;
      },
      reasoning: (delta: string) => {
        all += options.keepsMarkers === true ? delta : `{${delta}}`;
      },
      toolStart: (index: number, name: string, id: string | undefined) => {
        all += `[${name}]`;
        sink.toolStart(index, name, id);
      },
    };
    const { singleTokenMarkers: special = new Set() } = options;
    const pieces = text.split(/(<\/?think>|<tool_call>)/).filter((piece) => piece !== "");
    for (const piece of pieces) {
      if (special.has(piece)) parser.special(piece, telling);
      else for (const c of piece) parser.push(c, telling);
    }
    parser.finish(telling);
    return all;
  }
  const ids = { singleTokenMarkers: new Set(["<think>", "</think>", "<tool_call>"]) };
  test("told as text, an answer keeps its order", () => {
    for (const text of ["Use <tool<think>x</think>ok", "a <tool_cal<think>x</think>", "[<think>x</think>ok"])
      for (const options of [{}, ids]) expect(told(text, "hermes", { ...options, keepsMarkers: true })).toBe(text);
  });
  test("an opener that a thought follows opens no call", () => {
    expect(told("<tool_call><think>I</think>J", "hermes", ids)).toBe("<tool_call>{I}J");
    expect(told("<tool_call>\n<think>I</think>J", "qwen_xml").replaceAll("}{", "")).toBe("<tool_call>\n{I}J");
  });
  test("a thought inside a call is a value", () => {
    const text = '<tool_call>{"name": "run", "arguments": {"cmd": "<think>x</think>"}}';
    expect(told(text, "hermes")).toBe("[run]");
  });
  test("behind white space and a thought a call may begin the answer", () => {
    expect(told('\n<think>I</think>\n{"name": "run", "parameters": {}}', "llama", ids)).toContain("{I}[run]");
  });
});

describe("values that a schema names", () => {
  const tools = [
    {
      name: "run",
      parameters: {
        properties: {
          city: { enum: ["Łódź", "Oslo", " x "] },
          mode: { type: ["string", "null"], enum: ["a", null] },
          size: { enum: ["a"], nullable: true },
          either: { anyOf: [{ $ref: "#/$defs/city" }, { type: "integer" }] },
        },
        $defs: { city: { type: "string", const: "Łódź" } },
      },
    },
  ];
  const glm = (key: string, value: string) => {
    const text = `<tool_call>run\n<arg_key>${key}</arg_key>\n<arg_value>${value}</arg_value>\n</tool_call>`;
    return JSON.parse(read("glm45_moe", text, { tools }).toolCalls[0]!.arguments)[key];
  };
  test("lose the white space that grammars allow around them", () => {
    for (const value of ["Łódź", "\nŁódź", " Łódź\n"]) expect(glm("city", value)).toBe("Łódź");
    expect(glm("either", "\nŁódź ")).toBe("Łódź");
    expect(glm("mode", "\na")).toBe("a");
  });
  test("keep what they are, and others theirs", () => {
    for (const value of [" x ", "\nelsewhere ", " ", "Łód", "Oslo or so"]) expect(glm("city", value)).toBe(value);
  });
  test("null is one where the schema has it", () => {
    expect([glm("mode", "null"), glm("size", "null"), glm("city", "null")]).toEqual([null, null, "null"]);
  });
  test("an answer that ends in one has it as far as it goes", () => {
    const text = "<tool_call>run\n<arg_key>city</arg_key>\n<arg_value>\nŁó";
    expect(read("glm45_moe", text, { tools }).toolCalls).toEqual(unfinished('{"city": "Łó'));
  });
});
