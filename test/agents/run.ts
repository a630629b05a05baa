/**
 * Codex and Claude Code against the compiled gateway and a scripted engine, with nobody else to talk to.   npm run test:agents
 *
 * Fetches the agents (test/agents/package.json, 800 MB on disk) from the package registry the first time.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fixtures } from "../../scripts/fixtures.ts";
import { gatewayBinary } from "../engines/servers.ts";
import { type Part, runParts } from "../interop/suite.ts";
import { AGENTS } from "./agents.ts";
import { MODELS } from "./models.ts";
import { session } from "./session.ts";
import { fenceCommand, openTrap, tryTrap } from "./trap.ts";

const FENCED = "COLLIE_AGENTS_FENCED";
const here = import.meta.dir;

/** Whether the lock file is that of what is installed. */
function isInstalled(): boolean {
  const mark = join(here, "node_modules", ".collie-lock.json");
  return existsSync(mark) && readFileSync(mark, "utf8") === readFileSync(join(here, "package-lock.json"), "utf8");
}

async function install(): Promise<void> {
  console.error("collie: fetching Codex and Claude Code (800 MB on disk) ...");
  const child = Bun.spawn(["npm", "ci", "--loglevel=error"], { cwd: here, stdin: "ignore", stdout: 2, stderr: 2 });
  if ((await child.exited) !== 0) throw new Error("npm ci failed in test/agents");
  await Bun.write(join(here, "node_modules", ".collie-lock.json"), Bun.file(join(here, "package-lock.json")));
}

/** Everything that needs a network, then the rest of this file once more behind the fence. */
async function prepare(): Promise<number> {
  if (!isInstalled()) await install();
  await fixtures();
  await gatewayBinary();
  const fence = fenceCommand();
  const child = Bun.spawn([...(fence ?? []), process.execPath, "run", import.meta.path], {
    env: { ...process.env, [FENCED]: fence === undefined ? "no" : "yes" },
    stdio: ["ignore", "inherit", "inherit"],
  });
  return child.exited;
}

async function judge(fenced: boolean): Promise<number> {
  const trap = await openTrap(fenced);
  console.log(
    fenced
      ? "network: none but this machine; names, and connections to ports 80 and 443 of any address, are noted"
      : "network: not fenced off (no unshare); only what goes by way of a proxy is noted",
  );
  const parts: Part[] = [
    { name: "trap", run: (suite) => suite.check("the trap notices who would leave", () => tryTrap(trap)) },
  ];
  for (const agent of AGENTS) {
    console.log(`${agent.name}: ${await agent.version()}`);
    for (const model of MODELS)
      parts.push({ name: `${agent.name}, ${model.name}`, run: (suite) => session(suite, agent, model, trap) });
  }
  const { passed, failed } = await runParts(parts, 1);
  trap.stop();
  console.log(`agents: ${passed} passed, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}

const fenced = process.env[FENCED];
process.exit(fenced === undefined ? await prepare() : await judge(fenced === "yes"));
