/** Python clients on the official stubs against the simulated engine, of the same age and of the other. */
import { equal } from "node:assert/strict";
import { join } from "node:path";
import { gatewayBinary, startServer } from "../engines/servers.ts";
import { RELEASES, type Release } from "./dialects.ts";
import { bundleFolder } from "./scripted-engine.ts";
import type { Suite } from "./suite.ts";

const LIMIT_MS = 90_000;

interface Finding {
  readonly name: string;
  readonly fault: string | null;
}

async function findings(python: string, dialect: string, release: Release, url: string): Promise<readonly Finding[]> {
  const child = Bun.spawn(
    [python, "-B", join(import.meta.dir, "ask.py"), dialect, release, url.replace("grpc://", "")],
    { stdout: "pipe", stderr: "inherit", timeout: LIMIT_MS },
  );
  const text = await new Response(child.stdout).text();
  equal(await child.exited, 0, "the client failed");
  return JSON.parse(text) as Finding[];
}

/** One simulated engine, asked by clients of both ages, one after the other. */
export async function clientChecks(
  suite: Suite,
  pythons: ReadonlyMap<Release, string>,
  dialect: string,
  release: Release,
): Promise<void> {
  const flags = ["--dialect", dialect, "--protocol", release, "--port", "0", "--model-path", bundleFolder];
  const engine = await startServer([await gatewayBinary(), "engine", ...flags], /(grpc:\/\/[\d.:]+)/, 30_000);
  try {
    for (const stubs of RELEASES)
      for (const { name, fault } of await findings(pythons.get(stubs)!, dialect, release, engine.url))
        await suite.check(`stubs ${stubs}: ${name}`, () => {
          if (fault !== null) throw new Error(fault);
        });
  } finally {
    await engine.stop();
  }
}
