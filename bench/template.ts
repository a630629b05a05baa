/**
 * Time to render a conversation of 40 messages and 20 tools under the chat templates of Qwen 3 and Llama 3.1, warm and for the first
 * time, beside @huggingface/jinja, if a folder has it. The sides take turns.
 *   node scripts/bun.mjs run bench/template.ts [--jinja FOLDER] [--rounds N] [--out FILE]
 * FOLDER: where `npm install @huggingface/jinja` ran. The templates are those of scripts/fixtures.ts.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { fixtures } from "../scripts/fixtures.ts";
import { parseLossless } from "../src/template/lossless-json.ts";
import { compileModelTemplate, findChatTemplate, type TemplateSource } from "../src/template/model-template.ts";
import { prepareMessages } from "../src/template/prepare-messages.ts";

const { values } = parseArgs({
  options: { jinja: { type: "string" }, rounds: { type: "string", default: "2000" }, out: { type: "string" } },
});
const ROUNDS = Number(values.rounds);
const MESSAGES = 40;
const TOOLS = 20;

const words =
  "the model answers with care and calls a tool when it must know more than it was told in the prompt".split(" ");
const prose = (count: number, seed: number): string =>
  Array.from({ length: count }, (_, i) => words[(i * 7 + seed * 3) % words.length]).join(" ");

const tools = Array.from({ length: TOOLS }, (_, i) => ({
  type: "function",
  function: {
    name: `tool_${i}`,
    description: `Tool number ${i}: ${prose(20, i)}.`,
    parameters: {
      type: "object",
      properties: Object.fromEntries(
        Array.from({ length: 5 }, (_, j) => [
          `argument_${j}`,
          { type: j % 2 === 0 ? "string" : "number", description: prose(10, i + j), ...(j === 1 && { minimum: 0 }) },
        ]),
      ),
      required: ["argument_0", "argument_1"],
    },
  },
}));

/** A system message, then by turns: a question, a call, its result, an answer. */
const messages = Array.from({ length: MESSAGES }, (_, i) => {
  if (i === 0) return { role: "system", content: prose(60, i) };
  switch (i % 4) {
    case 1:
      return { role: "user", content: prose(50, i) };
    case 2: {
      const call = { name: `tool_${i % TOOLS}`, arguments: { argument_0: prose(4, i), argument_1: i } };
      return { role: "assistant", content: "", tool_calls: [{ id: `call_${i}`, type: "function", function: call }] };
    }
    case 3:
      return { role: "tool", tool_call_id: `call_${i - 1}`, content: JSON.stringify({ result: prose(30, i) }) };
  }
  return { role: "assistant", content: prose(80, i) };
});

interface Side {
  readonly name: string;
  compile(source: TemplateSource): () => string;
}

const now = new Date("2026-03-05T04:07:09");
const plain: Side = {
  name: "Collie",
  compile(source) {
    const template = compileModelTemplate(source);
    return () => template.render({ messages, tools, addGenerationPrompt: true, now });
  },
};
/** Requests as they come: read with their number text, and prepared as transformers does. */
const lossless: Side = {
  name: "Collie, messages prepared, lossless JSON",
  compile(source) {
    const template = compileModelTemplate(source);
    const [given, declared] = [messages, tools].map((value) => parseLossless(JSON.stringify(value)));
    return () =>
      template.render({
        messages: prepareMessages(given as readonly ReadonlyMap<string, unknown>[]),
        tools: declared as readonly unknown[],
        addGenerationPrompt: true,
        now,
      });
  },
};

interface JinjaModule {
  readonly Template: new (source: string) => { render(context: Record<string, unknown>): string };
}

async function other(folder: string): Promise<Side> {
  const at = join(folder, "node_modules", "@huggingface", "jinja");
  const { version } = JSON.parse(readFileSync(join(at, "package.json"), "utf8")) as { version: string };
  const { Template } = (await import(join(at, "dist", "index.js"))) as JinjaModule;
  return {
    name: `@huggingface/jinja ${version}`,
    compile({ source, specials }) {
      const template = new Template(source);
      return () =>
        template.render({ ...specials, messages, tools, add_generation_prompt: true, date_string: "05 Mar 2026" });
    },
  };
}

const micros = (run: () => unknown): number => {
  const started = performance.now();
  run();
  return (performance.now() - started) * 1000;
};
const sorted = (figures: readonly number[]): number[] => [...figures].sort((a, b) => a - b);
const at = (figures: readonly number[], share: number): string =>
  (sorted(figures)[Math.floor((figures.length - 1) * share)] ?? Number.NaN).toFixed(0);

const folder = await fixtures();
const sides = [plain, lossless, ...(values.jinja === undefined ? [] : [await other(values.jinja)])];
const table = [
  "| template | side | warm p50 us | p10 | p99 | compile and first render us | prompt characters | equal |",
  "|---|---|---|---|---|---|---|---|",
];
const started = loadavg()[0]?.toFixed(2);
const packaged = (name: string): TemplateSource => {
  const config = new Uint8Array(readFileSync(join(folder, "tokenizer-configs", `${name}.json`)));
  const found = findChatTemplate(new Map([["tokenizer_config.json", config]]));
  if (found === undefined) throw new Error(`${name} has no template`);
  return found;
};
const llama = packaged("llama3_1");
const own = join(import.meta.dir, "..", "test", "golden", "template", "chat_templates", "tools_in_user.jinja");
for (const [label, found] of [
  ["Qwen 3", packaged("qwen3")],
  ["Llama 3.1, as the npm package has it: without tools", llama],
  [
    "ours in the style of Llama 3.1: tools in the user's turn, indented",
    { ...llama, source: readFileSync(own, "utf8") },
  ],
] as const) {
  const runs = sides.map((side) => {
    let text = "";
    const first = micros(() => (text = side.compile(found)()));
    return { side, first, text, render: side.compile(found), times: [] as number[] };
  });
  for (let round = 0; round < ROUNDS + 300; round++) {
    for (const { render, times } of runs) {
      const time = micros(() => Buffer.byteLength(render()));
      if (round >= 300) times.push(time);
    }
  }
  for (const { side, first, text, times } of runs)
    table.push(
      `| ${label} | ${side.name} | ${at(times, 0.5)} | ${at(times, 0.1)} | ${at(times, 0.99)} | ${first.toFixed(0)} | ${text.length} | ${text === runs[0]?.text ? "yes" : "no"} |`,
    );
}
const head = `${MESSAGES} messages, ${TOOLS} tools, ${ROUNDS} rounds by turns after 300 to warm up. ${cpus()[0]?.model.trim()}, Bun ${Bun.version}; load average at the start ${started}.`;
const report = `# Chat templates: time to render\n\n${head}\n\n${table.join("\n")}\n`;
console.log(report);
if (values.out !== undefined) writeFileSync(values.out, report);
