/** What can't be compared with the peer: clients that leave, seen from the engine, and many at once. */
import { join } from "node:path";
import { ask, askAndHangUp, askAndLeave, askStream, type ChatBody } from "./answer.ts";
import { forcedTextCases } from "./cases/forced-texts.ts";
import type { CaseResult } from "./results.ts";
import { enginesFolder } from "./servers.ts";

/** A client that left must have freed the engine within this time. */
const FREED_WITHIN_MS = 500;

interface LoadRecord {
  /** Unix time in seconds. */
  readonly t: number;
  readonly running: number;
}

const long: ChatBody = {
  model: "tiny",
  messages: [{ role: "user", content: "Hello" }],
  temperature: 0,
  max_tokens: 3500,
  ignore_eos: true,
};

/** An engine whose running requests can be counted. */
export interface WatchedEngine {
  readonly dialect: "vllm" | "mlx";
  readonly url: string;
}

async function watched(
  { dialect, url }: WatchedEngine,
  work: () => Promise<void>,
): Promise<{ records: LoadRecord[]; leftAt: number }> {
  const python = join(enginesFolder, dialect, "bin", "python");
  const script = join(import.meta.dir, "watch_loads.py");
  const watcher = Bun.spawn([python, script, dialect, url.replace("grpc://", "")], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  const records: LoadRecord[] = [];
  let first!: () => void;
  const started = new Promise<void>((resolve) => {
    first = resolve;
  });
  const reading = (async () => {
    const decoder = new TextDecoder();
    let rest = "";
    for await (const bytes of watcher.stdout as unknown as AsyncIterable<Uint8Array>) {
      rest += decoder.decode(bytes, { stream: true });
      const lines = rest.split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) records.push(JSON.parse(line) as LoadRecord);
      if (records.length > 0) first();
    }
  })();
  await started;
  await work();
  const leftAt = Date.now() / 1000;
  await Bun.sleep(FREED_WITHIN_MS + 700);
  watcher.stdin.end();
  await watcher.exited;
  await reading;
  return { records, leftAt };
}

/** Whether the engine ran the requests of `work`, and none soon after it. */
export async function freed(
  name: string,
  engine: WatchedEngine,
  requests: number,
  work: () => Promise<void>,
): Promise<CaseResult> {
  const { records, leftAt } = await watched(engine, work);
  const faults: string[] = [];
  const most = Math.max(...records.map((r) => r.running));
  if (most < requests) faults.push(`the engine was seen running ${most} requests, expected ${requests}`);
  const late = records.filter((r) => r.t > leftAt + FREED_WITHIN_MS / 1000 && r.running > 0);
  if (late.length > 0)
    faults.push(
      `${late[0]?.running} requests ran ${Math.round((late[0]!.t - leftAt) * 1000)} ms after the client left`,
    );
  return { name, faults, note: undefined };
}

/** Every forced text at once, half of them streamed: no answer may get another's tokens. */
async function atOnce(gatewayUrl: string): Promise<CaseResult> {
  const answers = await Promise.all(
    forcedTextCases.map(async ([name, body, rest], i) => {
      const put = i % 2 === 0 ? ask : askStream;
      const answer = await put(gatewayUrl, { model: "tiny", messages: [{ role: "user", content: "Hello" }], ...body });
      return { name, text: answer.choices[0]?.text ?? answer.error, expected: rest?.expectText };
    }),
  );
  const faults = answers.filter((a) => a.text !== a.expected).map((a) => `${a.name}: ${JSON.stringify(a.text)}`);
  return { name: `${answers.length} forced texts at once`, faults, note: undefined };
}

/** Clients that go away in the middle of an answer, and many at once. */
export async function gatewayChecks(gatewayUrl: string, engineUrl: string): Promise<CaseResult[]> {
  const engine: WatchedEngine = { dialect: "vllm", url: engineUrl };
  const sampled = { ...long, temperature: 1, n: 3 };
  return [
    await atOnce(gatewayUrl),
    await freed("client leaves a stream", engine, 1, () => askAndLeave(gatewayUrl, long, 20)),
    await freed("client leaves while waiting for the whole answer", engine, 1, () =>
      askAndHangUp(gatewayUrl, long, 1000),
    ),
    await freed("client leaves a stream of three choices", engine, 1, () => askAndLeave(gatewayUrl, sampled, 60)),
    await freed("four clients leave at once", engine, 4, async () => {
      await Promise.all(Array.from({ length: 4 }, () => askAndLeave(gatewayUrl, long, 40)));
    }),
  ];
}
