/** Which scripted engines the gateway takes as workers, and which not. */
import { equal, match, ok } from "node:assert/strict";
import { ask } from "../engines/answer.ts";
import { ServerStartError, startGateway } from "../engines/servers.ts";
import { ScriptedEngine } from "./scripted-engine.ts";
import type { Suite } from "./suite.ts";

/** Long enough for several tries of a worker that is refused. */
const NOT_READY_MS = 4000;

async function neverReady(
  python: string,
  flags: readonly string[],
  words: RegExp,
  gatewayFlags: readonly string[],
): Promise<void> {
  const engine = await ScriptedEngine.start(python, flags);
  try {
    const gateway = await startGateway(engine.url, gatewayFlags, NOT_READY_MS).catch((error: unknown) => error);
    if (!(gateway instanceof ServerStartError)) {
      await (gateway as { stop(): Promise<void> }).stop();
      throw new Error("the gateway took it as ready");
    }
    match(gateway.message, words);
    match(gateway.message, /was not ready/);
  } finally {
    await engine.stop();
  }
}

export async function workerChecks(suite: Suite, python: string, gatewayFlags: readonly string[]): Promise<void> {
  await suite.check("worker whose tokenizer bundle has a wrong digest: not ready", () =>
    neverReady(python, ["--bad-digest"], /digest/, gatewayFlags),
  );
  await suite.check("worker that says it is not healthy: not ready", () =>
    neverReady(python, ["--unhealthy"], /not healthy/, gatewayFlags),
  );
}

/** The model as the gateway shows it. */
export async function modelChecks(suite: Suite, url: string): Promise<void> {
  await suite.check("model list shows the engine's served name", async () => {
    const response = await fetch(`${url}/v1/models`);
    equal(response.status, 200);
    const { data } = (await response.json()) as { data: { id: string; object: string }[] };
    ok(data.some((m) => m.id === "scripted" && m.object === "model"));
  });
  await suite.check("another model: 404", async () => {
    equal((await ask(url, { model: "nobody", messages: [{ role: "user", content: "x" }] })).status, 404);
  });
}
