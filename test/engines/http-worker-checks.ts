/** vLLM's own HTTP server as a worker of the gateway: what it answers comes through as it is. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { type Answer, ask, askAndLeave, askStream, type ChatBody } from "./answer.ts";
import type { CaseResult } from "./results.ts";
import { type RunningServer, startGateway } from "./servers.ts";

const RUNNING = /^vllm:num_requests_running\{[^}]*\} ([\d.]+)/m;

/** Requests that must come out alike, asked of the server and through the gateway. */
const cases: readonly (readonly [string, ChatBody])[] = [
  ["a chat", { messages: [{ role: "user", content: "What is the capital of France?" }], max_tokens: 30 }],
  ["logprobs", { messages: [{ role: "user", content: "Hello" }], max_tokens: 6, logprobs: true, top_logprobs: 3 }],
  [
    "a field that the gateway does not know",
    { messages: [{ role: "user", content: "Hello" }], max_tokens: 9, vllm_xargs: { nobody: "knows" } },
  ],
  ["a regular expression", { messages: [{ role: "user", content: "x" }], structured_outputs: { regex: "[ab]{4}" } }],
  ["a text", { prompt: "Once upon a time", max_tokens: 12 }],
  ["a request that the engine refuses", { messages: [{ role: "user", content: "x" }], temperature: -1 }],
];

const told = ({ streamFaults: _, ...answer }: Answer): object => answer;

async function check(name: string, work: () => Promise<void>): Promise<CaseResult> {
  try {
    await work();
    return { name: `HTTP worker: ${name}`, faults: [], note: undefined };
  } catch (error) {
    return { name: `HTTP worker: ${name}`, faults: (error as Error).message.split("\n"), note: undefined };
  }
}

/** Puts a gateway in front of the server. */
export async function httpWorkerChecks(model: string, serverUrl: string): Promise<CaseResult[]> {
  let gateway: RunningServer;
  try {
    gateway = await startGateway(serverUrl);
  } catch (error) {
    return [
      { name: `HTTP worker: ${model} gets ready`, faults: (error as Error).message.split("\n"), note: undefined },
    ];
  }
  try {
    const { url } = gateway;
    const results: CaseResult[] = [];
    for (const [name, asked] of cases) {
      const body = { model, temperature: 0, ...asked };
      results.push(
        await check(`${name}, ${model}`, async () => {
          for (const put of [ask, askStream]) deepEqual(told(await put(url, body)), told(await put(serverUrl, body)));
        }),
      );
    }
    results.push(
      await check(`model list, ${model}`, async () => {
        const { data } = (await (await fetch(`${url}/v1/models`)).json()) as { data: { id: string }[] };
        deepEqual(
          data.map(({ id }) => id),
          [model],
        );
      }),
      await check(`client leaves a stream: the engine is told, ${model}`, async () => {
        const long = { model, messages: [{ role: "user", content: "Hello" }], max_tokens: 3000, ignore_eos: true };
        await askAndLeave(url, long, 10);
        await Bun.sleep(1000);
        const found = RUNNING.exec(await (await fetch(`${serverUrl}/metrics`)).text())?.[1];
        ok(found !== undefined, "the engine tells how many run");
        equal(Number(found), 0);
      }),
    );
    return results;
  } finally {
    await gateway.stop();
  }
}
