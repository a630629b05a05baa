/** Claude Code's conversations in templates of several families: the prompt grows at its end, whatever form the same text is sent in. */
import { afterAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { findChatTemplate } from "../../../../src/template/model-template.ts";
import { decodeAll } from "../../generation/demo-tokenizer.ts";
import { ScriptedEngine } from "../../generation/scripted-engine.ts";
import { type Gateway, modelEntry, startGateway } from "../../server/gateway.ts";
import { play } from "../../server/tool-chat.ts";
import { ask, post, WEATHER } from "./asking.ts";

const folder = join(import.meta.dir, "..", "..", "..", "golden", "template", "chat_templates");
const gateways: Gateway[] = [];
afterAll(() => Promise.all(gateways.map((gateway) => gateway.stop())));

function gatewayOf(name: string): Gateway {
  const template = findChatTemplate(
    new Map([
      ["chat_template.jinja", readFileSync(join(folder, `${name}.jinja`))],
      ["tokenizer_config.json", Buffer.from('{"bos_token":"<s>","eos_token":"</s>"}')],
    ]),
  );
  const engine = new ScriptedEngine((call) => queueMicrotask(() => play(["Yes."], call)));
  const gateway = startGateway([], engine, [modelEntry({ template })]);
  gateways.push(gateway);
  return gateway;
}

async function prompt(gateway: Gateway, body: object): Promise<string> {
  const response = await post(gateway, { ...ask, ...body });
  if (response.status !== 200) throw new Error(await response.text());
  return decodeAll(Array.from(gateway.engine.calls.at(-1)!.request.tokenIds), false);
}

const mark = { cache_control: { type: "ephemeral" } };
/** One text in the three forms that a client has for it. */
const forms = (text: string) => [text, [{ type: "text", text }], [{ type: "text", text, ...mark }]];
const id = (i: number) => `toolu_${String(i).repeat(40)}`;
const use = (i: number) => ({ type: "tool_use", id: id(i), name: "get_weather", input: { city: `town ${i}` } });
const result = (i: number, content: unknown) => ({ type: "tool_result", tool_use_id: id(i), content });
const base = { tools: [WEATHER], thinking: { type: "adaptive" }, output_config: { effort: "high" } };

const NAMES = [
  "tools_in_user",
  "inst",
  "generation",
  "compact",
  "channels",
  "declarations",
  "interleaved",
  "xml_tools",
  "think_prefix",
];

test.each(NAMES)("%s: the form of a text makes no difference", async (name) => {
  const gateway = gatewayOf(name);
  const prompts = new Set<string>();
  for (let form = 0; form < 3; form++) {
    const [system, asked, environment, found] = ["Be brief.", "Weather?", "# Environment\nLinux", "rain"].map(
      (text) => forms(text)[form],
    );
    const messages = [
      { role: "user", content: asked },
      { role: "system", content: environment },
      { role: "assistant", content: [use(1)] },
      { role: "user", content: [result(1, found)] },
    ];
    prompts.add(await prompt(gateway, { ...base, system, messages }));
  }
  expect(prompts.size).toBe(1);
  const [text] = prompts;
  expect(text).not.toContain("'type'");
  for (const part of ["Be brief.", "Weather?", "# Environment\nLinux", "town 1", "rain"]) expect(text).toContain(part);
});

/** The tools stand in front of the last user message in Mistral's, which is theirs to decide. */
test.each(NAMES)("%s: a conversation that grows", async (name) => {
  const gateway = gatewayOf(name);
  const system = "Be brief.";
  let messages: object[] = [
    {
      role: "user",
      content: [
        { type: "text", text: "<reminder>x</reminder>" },
        { type: "text", text: "Weather?" },
      ],
    },
    { role: "system", content: "# Environment" },
  ];
  let before = await prompt(gateway, { ...base, system, messages });
  const turns = [
    [
      { role: "assistant", content: [{ type: "text", text: "I look." }, use(1), use(2)] },
      { role: "user", content: [result(1, "rain"), result(2, "snow"), { type: "text", text: "Hurry." }] },
    ],
    [
      { role: "assistant", content: [use(3)] },
      { role: "user", content: [{ ...result(3, ""), is_error: true }] },
      { role: "system", content: "Time flies." },
    ],
    [
      { role: "assistant", content: "Done." },
      { role: "user", content: "Thanks." },
    ],
  ];
  for (const turn of turns) {
    messages = [...messages, ...turn];
    const now = await prompt(gateway, { ...base, system, messages });
    // of several calls this one writes the first alone, as with transformers
    const second = name === "channels" ? [] : ["town 2"];
    for (const text of ["rain", "snow", "Hurry.", "town 1", ...second, "# Environment"]) expect(now).toContain(text);
    let same = 0;
    while (before[same] === now[same] && same < before.length) same++;
    // what differs is the beginning of the answer that was asked for
    if (name !== "inst") expect(before.length - same).toBeLessThan(30);
    before = now;
  }
  for (const text of ["town 3", "error", "Time flies.", "Thanks."]) expect(before).toContain(text);
});
