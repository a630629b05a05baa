/** One session of an agent on a model: two turns, each with a command in a shell, judged from all sides. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fixtures } from "../../scripts/fixtures.ts";
import { gatewayBinary, type RunningServer, startServer } from "../engines/servers.ts";
import type { Suite } from "../interop/suite.ts";
import type { Agent, Place } from "./agents.ts";
import { type AgentModel, CONTEXT_LENGTH } from "./models.ts";
import { startRelay } from "./relay.ts";
import type { Trap } from "./trap.ts";

const START_MS = 60_000;
const KEY = "agents-key";
/** A later prompt goes on where an earlier one ended, but for what the template leaves out of turns that are over. */
const LEAST_CACHED = 0.9;

interface Turn {
  readonly asked: string;
  readonly thought: string;
  readonly command: string;
  /** What the command prints, which stands nowhere else. */
  readonly printed: string;
  readonly said: string;
}

const TURNS: readonly [Turn, Turn] = [
  {
    asked: "Put hello-from-collie into hello.txt, and show it in capitals.",
    thought: "One command does both.",
    command: "echo hello-from-collie | tee hello.txt | tr a-z A-Z",
    printed: "HELLO-FROM-COLLIE",
    said: "The file hello.txt is there now.",
  },
  {
    asked: "Show the file with another word in the first place.",
    thought: "An editor for streams does that.",
    command: "sed s/hello/goodbye/ hello.txt",
    printed: "goodbye-from-collie",
    said: "It begins with goodbye there.",
  },
];

/** Script of the engine: the later a state of the session, the earlier its rule. */
function script(model: AgentModel, [tool, argument]: Agent["shell"]): unknown[] {
  const rules = TURNS.flatMap(({ asked, thought, command, printed, said }) => [
    { contains: asked, text: model.call(thought, tool, { [argument]: command }) },
    { contains: printed, text: model.say("It worked.", said) },
  ]);
  return [...rules.reverse(), { text: "Nobody told me what to say." }];
}

/** The parts that each request's prompt has, in this order, and those that it must not have. */
function expectedPrompts(model: AgentModel): { has: string[]; hasNot: string[] }[] {
  const [first, second] = TURNS;
  const thought = (turn: Turn) => (model.thinks ? [turn.thought] : []);
  const over = [first.asked, first.command, first.printed, first.said];
  return [
    { has: [first.asked], hasNot: [first.printed] },
    { has: [first.asked, ...thought(first), first.command, first.printed], hasNot: [first.said] },
    { has: [...over, second.asked], hasNot: [second.printed] },
    { has: [...over, second.asked, ...thought(second), second.command, second.printed], hasNot: [second.said] },
  ];
}

interface EngineRequest {
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly outcome: string;
  readonly promptIds: readonly number[];
}

async function detokenize(gateway: string, model: string, tokens: readonly number[]): Promise<string> {
  const answer = await fetch(`${gateway}/v1/detokenize`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${KEY}` },
    body: JSON.stringify({ model, tokens, skip_special_tokens: false }),
  });
  const body = (await answer.json()) as { text?: string };
  if (typeof body.text !== "string") throw new Error(`the prompt could not be read: ${JSON.stringify(body)}`);
  return body.text;
}

function judgePrompt(prompt: string, { has, hasNot }: { has: string[]; hasNot: string[] }): void {
  let at = 0;
  for (const part of has) {
    const found = prompt.indexOf(part, at);
    if (found < 0)
      throw new Error(
        `no '${part}' behind ${JSON.stringify(prompt.slice(Math.max(0, at - 60), at))} in\n${prompt.slice(-6000)}`,
      );
    at = found + part.length;
  }
  for (const part of hasNot) if (prompt.includes(part)) throw new Error(`'${part}' is there too early`);
}

const same = <T>(found: T, expected: T): void => {
  const [a, b] = [JSON.stringify(found), JSON.stringify(expected)];
  if (a !== b) throw new Error(`is ${a}, not ${b}`);
};

/** Runs the session and checks it. */
export async function session(suite: Suite, agent: Agent, model: AgentModel, trap: Trap): Promise<void> {
  const binary = await gatewayBinary();
  const root = mkdtempSync(join(tmpdir(), "collie-agents-"));
  const running: { stop(): Promise<void> }[] = [];
  const started = async (command: string[], ready: RegExp): Promise<RunningServer> => {
    const server = await startServer([binary, ...command], ready, START_MS, { XDG_CACHE_HOME: join(root, "cache") });
    running.unshift(server);
    return server;
  };
  try {
    model.files(join(root, model.name), await fixtures());
    writeFileSync(join(root, "script.json"), JSON.stringify(script(model, agent.shell)));
    const engineFlags = ["--port", "0", "--speed", "0", "--script", join(root, "script.json")];
    const engine = await started(
      ["engine", ...engineFlags, "--model-path", join(root, model.name)],
      /ready on grpc:\S+, statistics on (http:\S+)\/stats/,
    );
    const engineUrl = /ready on (grpc:\S+),/.exec(engine.log.join("\n"))![1]!;
    const gatewayFlags = [
      "--host",
      "127.0.0.1",
      "--port",
      "0",
      "--threads",
      "1",
      "--history-url",
      "memory",
      "--log-json",
    ];
    const gateway = await started(
      ["serve", ...gatewayFlags, "--api-key", KEY, "--log-level", "debug", "--worker-urls", engineUrl],
      /ready on (\S+?),/,
    );
    const relay = startRelay(gateway.url);
    running.unshift(relay);

    const place: Place = {
      gateway: relay.url,
      key: KEY,
      model: model.name,
      contextLength: CONTEXT_LENGTH,
      home: join(root, "home"),
      folder: join(root, "project"),
      environment: trap.environment,
    };
    for (const folder of [place.home, place.folder]) mkdirSync(folder);
    const triesBefore = trap.tries.length;

    for (const [i, turn] of TURNS.entries())
      await suite.check(`turn ${i + 1}: the agent ends with what the model said last`, async () =>
        same((await agent.turn(place, turn.asked, i === 0)).trim(), turn.said),
      );
    await suite.check("the command was run: the file is there", () =>
      same(readFileSync(join(place.folder, "hello.txt"), "utf8"), "hello-from-collie\n"),
    );

    const requests = (await (await fetch(`${engine.url}/requests?ids=1`)).json()) as EngineRequest[];
    const expected = expectedPrompts(model);
    await suite.check("the engine was asked four times, and was never cut off", () =>
      same(
        requests.map(({ outcome }) => outcome),
        expected.map(() => "finished"),
      ),
    );
    for (const [i, prompt] of expected.entries())
      await suite.check(`prompt ${i + 1} holds the session so far`, async () => {
        const ids = requests[i]?.promptIds;
        if (ids === undefined) throw new Error("it did not come");
        judgePrompt(await detokenize(gateway.url, model.name, ids), prompt);
      });
    const shares = requests.map(({ cachedTokens, promptTokens }) => cachedTokens / promptTokens);
    await suite.check(`the engine had most of the later prompts in its cache`, () => {
      if (!shares.slice(1).every((share) => share >= LEAST_CACHED)) throw new Error(`shares: ${shares}`);
    });
    const sizes = requests.map(({ promptTokens, cachedTokens }) => `${promptTokens} (${cachedTokens} cached)`);
    console.log(`      prompt tokens: ${sizes.join(", ")}`);

    await suite.check("the gateway failed no request of the agent", () =>
      same(
        gateway.log.filter((line) => /request failed/.test(line) && !/chat\/completions/.test(line)),
        [],
      ),
    );
    await suite.check(`it asked for nothing but ${agent.asks}`, () => same([...new Set(relay.answered)], [agent.asks]));
    await suite.check("nobody else was asked for", () => same(trap.tries.slice(triesBefore), []));
  } finally {
    for (const server of running) await server.stop();
    rmSync(root, { recursive: true, force: true });
  }
}
