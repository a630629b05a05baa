import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { demoModelFiles } from "../../../src/tokenizer/demo-model.ts";
import { filter } from "./filter.ts";

const folder = mkdtempSync(join(tmpdir(), "collie-render-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const files = await demoModelFiles();
/** Qwen 3's files with others beside or instead of them. */
function model(name: string, more: Record<string, string> = {}): string {
  const path = join(folder, name);
  mkdirSync(path);
  for (const [file, bytes] of files) writeFileSync(join(path, file), bytes);
  for (const [file, text] of Object.entries(more)) writeFileSync(join(path, file), text);
  return path;
}
const QWEN3 = model("plain");
const NAMED = model("several", {
  "chat_template.json": JSON.stringify({
    chat_template: [
      { name: "default", template: "D{% for m in messages %}[{{ m.content }}]{% endfor %}" },
      { name: "brief", template: "B{{ messages | length }}" },
    ],
  }),
});

const render = (modelPath: string, lines: Parameters<typeof filter>[1], ...flags: string[]) =>
  filter(["render", "--model-path", modelPath, ...flags], lines, { XDG_CACHE_HOME: join(folder, "cache") });
const good = async (modelPath: string, line: string | object, ...flags: string[]) => {
  const { lines, err, status } = await render(modelPath, [line], ...flags);
  expect([status, err, lines.length]).toEqual([0, "", 1]);
  return lines[0]!;
};

const messages = [{ role: "user", content: "Hi" }];
/** As transformers renders Qwen 3's template. */
const HI = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n";
const HI_IDS = [151644, 872, 198, 13048, 151645, 198, 151644, 77091, 198];

describe("the model's own template", () => {
  test("text, ids, and no open reasoning", async () => {
    expect(await good(QWEN3, { messages })).toEqual({ text: HI, ids: HI_IDS, ends_in_reasoning: false });
  });

  test("the fields that the prompt depends on", async () => {
    const off = { messages, chat_template_kwargs: { enable_thinking: false } };
    expect((await good(QWEN3, off))["text"]).toBe(`${HI}<think>\n\n</think>\n\n`);
    expect((await good(QWEN3, { messages, reasoning_effort: "none" }))["text"]).toBe(`${HI}<think>\n\n</think>\n\n`);
    expect((await good(QWEN3, { messages, add_generation_prompt: false }))["text"]).toBe(
      "<|im_start|>user\nHi<|im_end|>\n",
    );
    const begun = [...messages, { role: "assistant", content: "Hel" }];
    const text = String((await good(QWEN3, { messages: begun, continue_final_message: true }))["text"]);
    expect(text).toEndWith("Hel");
  });

  test("numbers and the order of keys stay as they are written", async () => {
    const line =
      '{"messages":[{"role":"user","content":"Hi"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"2":{"default":1.0},"1":{"default":12345678901234567890}}}}}]}';
    const { text } = await good(QWEN3, line);
    expect(text).toContain('"properties": {"2": {"default": 1.0}, "1": {"default": 12345678901234567890}}');
  });
});

describe("another template", () => {
  test("a file, with the clock of the line, and what it opens", async () => {
    const file = join(folder, "clock.jinja");
    writeFileSync(file, "{{ strftime_now('%Y-%m-%d %H:%M:%S') }}<tool_call></think><think>");
    const line = { messages, clock: "2026-01-31T12:00:05" };
    expect(await good(QWEN3, line, "--chat-template", file)).toMatchObject({
      text: "2026-01-31 12:00:05<tool_call></think><think>",
      ends_in_reasoning: true,
    });
    const none = await good(QWEN3, line, "--chat-template", file, "--reasoning-parser", "none");
    expect(none["ends_in_reasoning"]).toBe(false);
  });

  test("one of the model's own by its name", async () => {
    expect((await good(NAMED, { messages }))["text"]).toBe("D[Hi]");
    expect((await good(NAMED, { messages }, "--chat-template", "brief"))["text"]).toBe("B1");
    const { error } = await good(NAMED, { messages: [] }, "--chat-template", "brief");
    expect(error).toMatchObject({ message: "There must be at least one message" });
  });

  test("a file as chat_template.json", async () => {
    const file = join(folder, "processor.json");
    writeFileSync(file, JSON.stringify({ chat_template: "J{{ messages[0].content }}{{ eos_token }}" }));
    expect((await good(QWEN3, { messages }, "--chat-template", file))["text"]).toBe("JHi<|im_end|>");
    writeFileSync(file, '{"chat_template":5}');
    const { err, status } = await render(QWEN3, [{ messages }], "--chat-template", file);
    expect([status, err]).toEqual([1, expect.stringContaining("holds no chat_template")]);
  });

  test("a native encoder by its name, also of a model that has no template for itself", async () => {
    const { text } = await good(QWEN3, { messages, clock: "2026-01-31T12:00:00" }, "--chat-template", "harmony");
    expect(text).toContain("Current date: 2026-01-31");
    expect(text).toEndWith("<|start|>user<|message|>Hi<|end|><|start|>assistant");
  });

  test("a name that is none of these is a mistake", async () => {
    const { lines, err, status } = await render(NAMED, [{ messages }], "--chat-template", "long");
    expect([lines.length, status]).toEqual([0, 2]);
    expect(err).toStartWith('collie: --chat-template: "long" is no file, and none of default, brief, harmony');
  });

  test("one that does not compile is told with its line", async () => {
    const file = join(folder, "broken.jinja");
    writeFileSync(file, "a\n{% if %}");
    const { err, status } = await render(QWEN3, [{ messages }], "--chat-template", file);
    expect([status, err]).toEqual([1, expect.stringContaining("does not compile, line 2")]);
  });
});

describe("what reaches the template", () => {
  const file = join(folder, "shows.jinja");
  writeFileSync(
    file,
    "{% for m in messages %}{{ m.role }}:{{ m.content }}:{{ m.tool_calls|tojson if m.tool_calls }};{% endfor %}",
  );
  const calls = [{ type: "function", function: { name: "f", arguments: '{"a": 1.0}' } }];
  const line = {
    messages: [
      { role: "developer", content: [{ type: "text", text: "a" }] },
      { role: "robot", content: null, tool_calls: calls },
    ],
  };

  test("the messages as they are given", async () => {
    expect((await good(QWEN3, line, "--chat-template", file))["text"]).toBe(
      'developer:[{\'type\': \'text\', \'text\': \'a\'}]:;robot::[{"type": "function", "function": {"name": "f", "arguments": "{\\"a\\": 1.0}"}}];',
    );
  });

  test("or as Chat Completions brings them into the template's form", async () => {
    const flags = ["--chat-template", file, "--messages", "chat"];
    const { error } = await good(QWEN3, line, ...flags);
    expect(error).toMatchObject({ message: expect.stringContaining("messages[1].role: 'robot'") });
    const known = { messages: [line.messages[0]!, { role: "user", content: "b" }] };
    expect((await good(QWEN3, known, ...flags))["text"]).toBe("system:a:;user:b:;");
  });

  test("the choice of tools and the format of the answer, for formats that tell the model", async () => {
    const k3 = { messages, tool_choice: "required", response_format: { type: "json_object" }, reasoning_effort: "low" };
    const { text } = await good(QWEN3, k3, "--chat-template", "kimi_k3");
    for (const told of ["tool_choice=required", "response_format=json_object", "thinking_effort=low"])
      expect(text).toContain(told);
  });
});

describe("lines that can't be rendered", () => {
  test("have an error for an answer, in their place", async () => {
    const { lines, err, status } = await render(QWEN3, [
      { messages },
      "",
      "{",
      "[]",
      `{"a":${"[".repeat(300)}${"]".repeat(300)}}`,
      {},
      { messages: [5] },
      { messages, clock: "2026-01-31" },
      { messages, clock: "2026-02-31T12:00:00Z" },
      { messages, chat_template: "x" },
      { messages },
    ]);
    expect([err, status, lines.length]).toEqual(["", 0, 11]);
    expect([lines[0]!["text"], lines[10]!["text"]]).toEqual([HI, HI]);
    const errors = lines.slice(1, 10).map(({ error }) => error as { code: string; message: string });
    expect(errors.map(({ code }) => code)).toEqual([
      ...Array<string>(4).fill("json_parse_error"),
      ...Array<string>(4).fill("invalid_request"),
      "unsupported_parameter",
    ]);
    expect(errors.map(({ message }) => message.slice(0, 25))).toEqual([
      "Line 2 is empty: a JSON o",
      "Line 3 is not valid JSON:",
      "Line 4 must be a JSON obj",
      "Line 5 nests deeper than ",
      "Missing required paramete",
      "Invalid 'messages[0]': ex",
      "Invalid 'clock': expected",
      "Invalid 'clock': expected",
      "chat_template may not be ",
    ]);
  });

  test("no UTF-8", async () => {
    const { lines } = await render(QWEN3, Buffer.from('{"a":"\xff"}\n', "latin1"));
    expect(lines).toEqual([{ error: { code: "json_parse_error", message: "Line 1 is not valid UTF-8" } }]);
  });

  test("a template's refusal has the template's words", async () => {
    const file = join(folder, "refuses.jinja");
    writeFileSync(file, "{{ raise_exception('No, ' + messages[0].content) }}");
    const { lines } = await render(QWEN3, [{ messages }], "--chat-template", file);
    expect(lines).toEqual([{ error: { code: "invalid_request", message: "No, Hi" } }]);
  });
});

test("without a model, or with one that is not there", async () => {
  const env = { XDG_CACHE_HOME: join(folder, "cache") };
  expect(await filter(["render"], [], env)).toMatchObject({ status: 2, lines: [] });
  const missing = await render(join(folder, "nothing"), [{ messages }]);
  expect([missing.status, missing.err]).toEqual([1, expect.stringContaining("does not exist")]);
});
