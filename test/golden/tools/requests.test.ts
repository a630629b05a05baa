/** From the text of a Chat Completions request to the prompt, against transformers: see make_requests.py. */
import { afterAll, beforeAll, describe, expect, test, setSystemTime } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fixtures } from "../../../scripts/fixtures.ts";
import { chatConversation } from "../../../src/apis/chat/messages.ts";
import { renderPrompt } from "../../../src/generation/prompt.ts";
import { rawBody } from "../../../src/server/raw-body.ts";
import { readJson } from "../../../src/server/body.ts";
import { type ChatTemplate, compileChatTemplate } from "../../../src/template/chat-template.ts";
import { compileModelTemplate, findChatTemplate } from "../../../src/template/model-template.ts";
import { checked } from "../../unit/apis/chat/requests.ts";

interface Row {
  readonly template: string;
  readonly case: string;
  readonly body: string;
  readonly text?: string;
  readonly error?: string;
  /** Where it fails on several calls of a message: the same as calls one after the other. */
  readonly one_each?: string;
}
const read = (name: string): string => readFileSync(join(import.meta.dir, name), "utf8");
const { made_with, rows } = JSON.parse(read("requests.json")) as {
  made_with: { specials: Record<string, string> };
  rows: Row[];
};
const folder = await fixtures();
// templates print the date: that on which the prompts were made
beforeAll(() => setSystemTime(new Date(2026, 10, 30, 12)));
afterAll(() => setSystemTime());

const templates = new Map<string, ChatTemplate>();
function templateOf(name: string): ChatTemplate {
  let template = templates.get(name);
  if (template === undefined) {
    const own = [`${name}.jinja`, `../template/chat_templates/${name}.jinja`].find((path) => existsSync(join(import.meta.dir, path)));
    if (own !== undefined) template = compileChatTemplate(read(own), made_with.specials);
    else {
      const config = readFileSync(join(folder, "tokenizer-configs", `${name}.json`));
      template = compileModelTemplate(findChatTemplate(new Map([["tokenizer_config.json", new Uint8Array(config)]]))!);
    }
    templates.set(name, template);
  }
  return template;
}

/** As the server does it: the body is read, checked, and its text remembered. */
async function prompt(row: Row): Promise<string> {
  const body = await readJson(new Request("http://localhost/", { method: "POST", body: row.body }), { limit: 1 << 20 });
  const request = checked(body as Record<string, unknown>);
  const raw = rawBody(body as object);
  return renderPrompt(chatConversation(request, raw), templateOf(row.template)).text;
}

test("there are 289 prompts; a template like Llama's refuses parallel calls, and gets them one after the other", () => {
  expect(rows.length).toBe(289);
  const refused = rows.filter(({ error }) => error !== undefined);
  expect(refused.map(({ template, case: name }) => `${template} ${name}`)).toEqual([
    "tools_in_user parallel",
    "tools_in_user parallel_swapped",
  ]);
});

describe("prompts of requests", () => {
  test.each(rows.map((row) => [`${row.template} ${row.case}`, row] as const))("%s", async (_, row) => {
    expect(await prompt(row)).toBe(row.one_each ?? row.text!);
  });
});
