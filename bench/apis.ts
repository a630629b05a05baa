/**
 * CPU time of the gateway for each streamed token, by API, over HTTP on this machine: an engine in memory gives many streams one token
 * each by turns, and a client in a process of its own reads them. Nanoseconds per token, and the ratio to Chat Completions.
 *
 *     node scripts/bun.mjs bench/apis.ts
 */
import { encode, IM_END } from "../test/unit/generation/demo-tokenizer.ts";
import { type ScriptedCall, ScriptedEngine } from "../test/unit/generation/scripted-engine.ts";
import { MODEL, modelEntry, startGateway } from "../test/unit/server/gateway.ts";

const STREAMS = 64;
const TOKENS = 1500;
const ROUNDS = 7;

const user = [{ role: "user", content: "a" }];
const APIS: Readonly<Record<string, readonly [path: string, body: object]>> = {
  "Chat Completions": ["/v1/chat/completions", { messages: user }],
  Completions: ["/v1/completions", { prompt: "a", max_tokens: 4000 }],
  Responses: ["/v1/responses", { input: "a", store: false }],
  Messages: [
    "/v1/messages",
    { messages: user, max_tokens: 4000, thinking: { type: "enabled", budget_tokens: 1024, display: "summarized" } },
  ],
  Interactions: ["/v1beta/interactions", { input: "a", store: false }],
};

const words = encode(" The quick brown fox, as they say, jumps over the lazy dog again.".repeat(200)).slice(0, TOKENS);
const ANSWERS = { text: words, reasoning: [...encode("<think>"), ...words] };

const calls: { readonly call: ScriptedCall; readonly ids: readonly number[]; at: number }[] = [];
let answer: readonly number[] = ANSWERS.text;
const engine = new ScriptedEngine((call) => void calls.push({ call, ids: [...answer, IM_END], at: 0 }));

/** Gives each stream its next token, until all are over. */
function turn(): void {
  for (const each of calls) {
    const id = each.ids[each.at++];
    if (id === undefined) continue;
    each.call.chunk([id]).idle();
    if (each.at === each.ids.length) each.call.finish({ completionTokens: each.at }).end();
  }
  if (calls.some(({ at, ids }) => at < ids.length)) setImmediate(turn);
}

const gateway = startGateway([], engine, [modelEntry({ parsers: { reasoning: "qwen3", tool: undefined } })]);

const client = `
  const [url, body, streams] = process.argv.slice(1);
  const read = async () => {
    const response = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body });
    if (!response.ok) throw new Error(await response.text());
    for await (const _ of response.body) {}
  };
  await Promise.all(Array.from({ length: Number(streams) }, read));
`;

/** Nanoseconds of CPU per token. */
async function measure(path: string, body: object): Promise<number> {
  calls.length = 0;
  engine.calls.length = 0;
  const text = JSON.stringify({ model: MODEL, stream: true, ...body });
  const args = [process.execPath, "-e", client, gateway.url + path, text, String(STREAMS)];
  const child = Bun.spawn(args, { stdout: "inherit", stderr: "inherit" });
  while (calls.length < STREAMS) {
    if (child.exitCode !== null) throw new Error(`${path}: the client ended`);
    await Bun.sleep(2);
  }
  await Bun.sleep(20);
  Bun.gc(true);
  const before = process.cpuUsage();
  turn();
  if ((await child.exited) !== 0) throw new Error(`${path}: the client failed`);
  const { user: inUser, system } = process.cpuUsage(before);
  return ((inUser + system) * 1000) / (STREAMS * answer.length);
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;

for (const [kind, ids] of Object.entries(ANSWERS)) {
  answer = ids;
  const found = new Map<string, number[]>(Object.keys(APIS).map((name) => [name, []]));
  for (let round = -1; round < ROUNDS; round++)
    for (const [name, [path, body]] of Object.entries(APIS)) {
      const ns = await measure(path, body);
      if (round >= 0) found.get(name)?.push(ns);
    }
  const chat = median(found.get("Chat Completions") ?? []);
  console.log(`${kind}:`);
  for (const [name, times] of found) {
    const ns = median(times);
    const ratio = (ns / chat).toFixed(2);
    console.log(`  ${name.padEnd(18)} ${ns.toFixed(0).padStart(6)} ns/token, ${ratio} x Chat Completions`);
  }
}
await gateway.stop();
