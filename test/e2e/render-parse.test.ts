/** The commands that render and parse, and the routes of the parsers, in the compiled program; prompts are those of transformers. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { demoModelFiles } from "../../src/tokenizer/demo-model.ts";
import { BUILD_MS, collieBinary } from "./support/binary.ts";
import { cleanEnv, root, startEngine, startGateway } from "./support/processes.ts";

interface Row {
  readonly tokenizer: string;
  readonly template: string;
  readonly case: string;
  readonly clock: string;
  readonly expect: { readonly text?: string };
  readonly ids_sha256?: string;
}

const folder = mkdtempSync(join(tmpdir(), "collie-render-parse-"));
const model = join(folder, "qwen3");
beforeAll(async () => {
  collieBinary();
  mkdirSync(model);
  for (const [name, bytes] of await demoModelFiles()) writeFileSync(join(model, name), bytes);
}, BUILD_MS);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function filter(args: readonly string[], lines: readonly string[]): Record<string, unknown>[] {
  const { stdout, stderr, exitCode } = Bun.spawnSync([collieBinary(), ...args], {
    env: cleanEnv(),
    stdin: Buffer.from(lines.map((line) => `${line}\n`).join("")),
  });
  expect([exitCode, stderr.toString()]).toEqual([0, ""]);
  const answers = stdout.toString().split("\n");
  expect(answers.pop()).toBe("");
  expect(answers).toHaveLength(lines.length);
  return answers.map((line) => JSON.parse(line) as Record<string, unknown>);
}

/** The request for a row, with the numbers and the order of keys of the row's own text. */
function request(line: string, { clock }: Row): string {
  const input = line.slice(line.indexOf('"input":{') + '"input":{'.length, line.indexOf(`,"clock":"${clock}"`));
  const named = input.replace(/,"kwargs":\{/, ',"chat_template_kwargs":{');
  return `{"clock":"${clock}","add_generation_prompt":false,${named}`; // of two keys the second counts
}

test("collie render gives the texts and ids of transformers", () => {
  const [, ...lines] = gunzipSync(readFileSync(join(root, "test/golden/template/chat.jsonl.gz")))
    .toString()
    .trimEnd()
    .split("\n");
  const rows = lines
    .map((line) => [line, JSON.parse(line) as Row] as const)
    .filter(([, row]) => row.tokenizer === "qwen3" && row.template === "default" && row.expect.text !== undefined);
  expect(rows.length).toBe(139);
  const requests = rows.map(([line, row]) => request(line, row));
  const found = filter(["render", "--model-path", model], requests);
  for (const [i, [, { case: name, expect: expected, ids_sha256 }]] of rows.entries()) {
    expect([name, found[i]!["text"]]).toEqual([name, expected.text]);
    const sha = createHash("sha256").update(JSON.stringify(found[i]!["ids"])).digest("hex");
    expect([name, sha]).toEqual([name, String(ids_sha256)]);
  }
});

const TEXT = '<think>Hm.</think>Yes.<tool_call>\n{"name": "f", "arguments": {"a": 1.0}}\n</tool_call>';

test("collie parse takes an answer apart, however it is cut", () => {
  const [whole, chars] = filter(
    ["parse", "--model-path", model],
    [JSON.stringify({ chunks: [TEXT] }), JSON.stringify({ chunks: [...TEXT] })],
  );
  for (const each of [whole, chars])
    expect(each).toMatchObject({
      content: "Yes.",
      reasoning: "Hm.",
      tool_calls: [{ index: 0, name: "f", arguments: '{"a": 1.0}' }],
      finish_reason: "tool_calls",
    });
});

test("the parsers' routes answer on a gateway", async () => {
  const engine = await startEngine();
  const gateway = await startGateway([engine]);
  try {
    const post = async (path: string, body: object) => {
      const response = await fetch(gateway.url + path, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      return [response.status, await response.json()];
    };
    const calls = { text: TEXT, tool_call_parser: "qwen", tools: [] };
    expect(await post("/parse/function_call", calls)).toEqual([
      200,
      {
        remaining_text: "<think>Hm.</think>Yes.",
        tool_calls: [{ function: { name: "f", arguments: '{"a": 1.0}' } }],
        success: true,
      },
    ]);
    expect(await post("/parse/reasoning", { text: "<think>Hm.</think>Yes.", reasoning_parser: "qwen3" })).toEqual([
      200,
      { normal_text: "Yes.", reasoning_text: "Hm.", success: true },
    ]);
  } finally {
    await gateway.stop();
    await engine.stop();
  }
});
