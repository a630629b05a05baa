/** Templates and whole conversations against Python's jinja2 and transformers: see the scripts beside. */
import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { fixtures } from "../../../scripts/fixtures.ts";
import { InvalidRequestError } from "../../../src/errors.ts";
import { type ChatTemplate, ChatTemplateRefusal, compileChatTemplate } from "../../../src/template/chat-template.ts";
import { type JsonObject, parseLossless } from "../../../src/template/lossless-json.ts";
import { compileModelTemplate, findChatTemplate } from "../../../src/template/model-template.ts";
import { prepareMessages } from "../../../src/template/prepare-messages.ts";
import { loadTokenizer, openTokenizer } from "../../../src/tokenizer/load.ts";
import type { Tokenizer } from "../../../src/tokenizer/tokenizer.ts";
import { differences, list, object, type RandomCases, render } from "./suite.ts";

const here = import.meta.dir;
const read = (name: string): string => readFileSync(join(here, name), "utf8");

describe("templates", () => {
  const file = object(parseLossless(read("cases.json")));
  const now = new Date(String(object(file.get("made_with")).get("now")));
  const cases = list(file.get("cases")).map(object);

  test("there are 545 by hand", () => expect(cases.length).toBe(545));

  test.each(cases.map((row) => [String(row.get("name")), row] as const))("%s", (_, row) => {
    const found = render(String(row.get("template")), object(row.get("context") ?? new Map()), now);
    const expected = row.get("expected");
    if (expected !== undefined) expect(found).toEqual({ text: String(expected) });
    else if (row.has("message")) expect(found).toEqual({ error: String(row.get("message")), raised: true });
    else expect(found).toHaveProperty("error");
  });

  test("1,200 at random", () => {
    const text = read("random.json");
    const random = JSON.parse(text) as RandomCases;
    expect(random.cases.length).toBe(1200);
    expect(differences(random, text)).toEqual([]);
  });
});

const [head = "", ...lines] = gunzipSync(readFileSync(join(here, "chat.jsonl.gz"))).toString("utf8").trimEnd().split("\n");
const header = JSON.parse(head) as { tokenizers: Record<string, { tokenizer_config_sha256: string; variables: Record<string, string> }> };
const rows = lines.map((line) => object(parseLossless(line)));
const folder = await fixtures();

/** By tokenizer and template, as they stand in the file. */
const groups = new Map<string, JsonObject[]>();
for (const row of rows) {
  const name = `${row.get("tokenizer")} ${row.get("template")}`;
  groups.set(name, [...(groups.get(name) ?? []), row]);
}

function templateOf(tokenizer: string, name: string): ChatTemplate {
  const { variables = {} } = header.tokenizers[tokenizer] ?? {};
  if (name === "default") {
    const config = readFileSync(join(folder, "tokenizer-configs", `${tokenizer}.json`));
    expect(createHash("sha256").update(config).digest("hex")).toBe(header.tokenizers[tokenizer]!.tokenizer_config_sha256);
    const found = findChatTemplate(new Map([["tokenizer_config.json", new Uint8Array(config)]]))!;
    expect(found.specials).toEqual(variables);
    return compileModelTemplate(found);
  }
  const own = name.slice("own:".length);
  if (own !== "named") return compileChatTemplate(read(`chat_templates/${own}.jinja`), variables);
  const named = JSON.parse(read("chat_templates/named.json")) as { name: string; template: string }[];
  return compileChatTemplate(Object.fromEntries(named.map((each) => [each.name, each.template])), variables);
}

type Found = { readonly text: string } | { readonly error: string; readonly refused: boolean };

function prompt(template: ChatTemplate, row: JsonObject): Found {
  const input = object(row.get("input"));
  const field = input.get("continue_final_message");
  const name = input.get("template");
  try {
    const messages = prepareMessages(list(input.get("messages")).map(object), {
      keepNullContent: template.needsNullContent,
    });
    const text = template.render({
      messages,
      addGenerationPrompt: input.get("add_generation_prompt") === true,
      variables: object(input.get("kwargs") ?? new Map()),
      now: new Date(String(row.get("clock"))),
      ...(input.has("tools") && { tools: list(input.get("tools")) }),
      ...(field !== undefined && { continueFinalMessage: field as boolean | string }),
      ...(name !== undefined && { template: String(name) }),
    });
    return { text };
  } catch (error) {
    if (!(error instanceof InvalidRequestError)) throw error;
    return { error: error.message, refused: error instanceof ChatTemplateRefusal };
  }
}

/** Of an error, only what a template says itself has fixed words. */
function equals(found: Found, wanted: JsonObject): boolean {
  if (wanted.has("text")) return "text" in found && found.text === wanted.get("text");
  if (!("error" in found)) return false;
  return wanted.get("kind") !== "raised" || (found.refused && found.error === wanted.get("error"));
}

/** Function names of the tool calls of a conversation. */
const callNames = (row: JsonObject): string[] =>
  list(object(row.get("input")).get("messages"))
    .map(object)
    .flatMap((message) => list(message.get("tool_calls") ?? []))
    .map((call) => object(object(call).get("function") ?? call).get("name"))
    .map(String);

describe("conversations", () => {
  test("there are 2,707, of seven models and ten templates of ours", () => {
    expect(rows.length).toBe(2707);
    expect(groups.size).toBe(16);
  });

  test.each([...groups])("%s", (name, group) => {
    const [tokenizer = "", template = ""] = name.split(" ");
    const compiled = templateOf(tokenizer, template);
    const wrong = group
      .map((row) => ({ row, found: prompt(compiled, row) }))
      .filter(({ row, found }) => {
        const raw = row.get("raw");
        return !equals(found, object(row.get("expect"))) && !(raw !== undefined && equals(found, object(raw)));
      })
      .map(({ row, found }) => ({ case: row.get("case"), found, wanted: object(row.get("expect")).get("text") }));
    expect(wrong).toEqual([]);
  });

  test("tool calls without content are written, though transformers drops the null that DeepSeek V3 asks for", () => {
    const compiled = templateOf("deepseek_v3", "default");
    expect(compiled.needsNullContent).toBe(true);
    const withRaw = (groups.get("deepseek_v3 default") ?? []).filter(
      (row) => callNames(row).length > 0 && row.has("raw") && object(row.get("raw")).has("text"),
    );
    expect(withRaw.length).toBeGreaterThan(1);
    for (const row of withRaw) {
      const found = prompt(compiled, row);
      expect(found).toEqual({ text: String(object(row.get("raw")).get("text")) });
      for (const called of callNames(row)) expect("text" in found && found.text).toContain(called);
    }
    expect(templateOf("qwen3", "default").needsNullContent).toBe(false);
    expect(templateOf("llama3_1", "default").needsNullContent).toBe(false);
  });

  test.each(["qwen3", "llama3_1", "deepseek_v3", "gemma3", "gemini", "gptoss"])("token ids of %s", async (name) => {
    const json = readFileSync(join(folder, "tokenizers", `${name}.json`));
    const tokenizer: Tokenizer = openTokenizer(await loadTokenizer(new Map([["tokenizer.json", new Uint8Array(json)]])));
    const own = rows.filter((row) => row.get("tokenizer") === name && row.has("ids_sha256"));
    expect(own.length).toBeGreaterThan(100);
    const templates = new Map<string, ChatTemplate>();
    const wrong = own.filter((row) => {
      const label = String(row.get("template"));
      const template = templates.get(label) ?? templateOf(name, label);
      templates.set(label, template);
      const found = prompt(template, row);
      if (!("text" in found)) return true;
      if (row.has("raw") && found.text !== object(row.get("expect")).get("text")) return false; // transformers lost the calls
      const ids = [...tokenizer.encode(found.text)];
      return ids.length !== row.get("n_ids") || sha256(JSON.stringify(ids)) !== row.get("ids_sha256");
    });
    expect(wrong.map((row) => row.get("case"))).toEqual([]);
  });
});

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
