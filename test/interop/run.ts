/**
 * The compiled gateway, and the simulated engine, against Python peers on the engines' own gRPC stubs: five dialects, of the oldest and
 * the newest release.   npm run test:interop [-- --only TEXT]
 *
 *   --only TEXT   only peers whose name has TEXT: "sglang", "mlx 0.4.14", "client vllm", "real vLLM"
 *
 * Needs Python 3.10 or newer, and its package index the first time; without them everything is skipped.
 */
import { parseArgs } from "node:util";
import { gatewayBinary } from "../engines/servers.ts";
import { answerChecks } from "./answer-checks.ts";
import { clientChecks } from "./client-checks.ts";
import { INTEROP_DIALECTS, RELEASES, type Release } from "./dialects.ts";
import { interopPython } from "./python.ts";
import { QwenText } from "./qwen-text.ts";
import { requestChecks } from "./request-checks.ts";
import { makeBundleFolder, ScriptedEngine } from "./scripted-engine.ts";
import { simulatorChecks } from "./simulator-checks.ts";
import { type Part, runParts, type Suite } from "./suite.ts";
import { gatewayOf, modelChecks, type Peer, workerChecks } from "./worker-checks.ts";

const { values: options } = parseArgs({ args: process.argv.slice(2), options: { only: { type: "string" } } });

const pythons = new Map<Release, string>();
for (const release of RELEASES) {
  const python = interopPython(release);
  if (typeof python !== "string") {
    console.log(`skipped: ${python.why}`);
    console.log("interop: 0 passed, 0 failed, 1 skipped");
    process.exit(0);
  }
  pythons.set(release, python);
}

await gatewayBinary();
makeBundleFolder();
const qwen = new QwenText();
const AT_ONCE = 3;

/** The gateway's client against a scripted engine. */
async function gatewayAgainst(suite: Suite, peer: Peer): Promise<void> {
  const engine = await ScriptedEngine.start(peer.python, peer.dialect.name);
  try {
    const gateway = await gatewayOf(engine, peer);
    try {
      await modelChecks(suite, gateway.url, peer);
      await answerChecks(suite, engine, gateway.url, qwen, peer);
      await requestChecks(suite, engine, gateway.url, qwen, peer);
    } finally {
      await gateway.stop();
    }
  } finally {
    await engine.stop();
  }
  await workerChecks(suite, peer);
}

const peers = RELEASES.flatMap((release) => INTEROP_DIALECTS.map((dialect) => ({ release, dialect })));
const parts: readonly Part[] = [
  ...peers.flatMap(({ dialect, release }) => {
    // The other transport differs below the dialects, so it is tried with two of them.
    const both = dialect.name === "vllm" ? release === "0.4.28" : dialect.name === "sglang" && release === "0.4.14";
    return (both ? ["framing", "grpc-js"] : ["framing"]).map((transport) => ({
      name: `${dialect.name} ${release} ${transport}`,
      run: (suite: Suite) =>
        gatewayAgainst(suite, {
          python: pythons.get(release)!,
          dialect,
          release,
          flags: ["--engine-transport", transport],
        }),
    }));
  }),
  ...peers.map(({ dialect, release }) => ({
    name: `client ${dialect.name} ${release}`,
    run: (suite: Suite) => clientChecks(suite, pythons, dialect.name, release),
  })),
  { name: "real vLLM", run: (suite: Suite) => simulatorChecks(suite, pythons.get("0.4.28")!) },
];
const wanted = parts.filter(({ name }) => options.only === undefined || name.includes(options.only));
const { passed, failed, skipped } = await runParts(wanted, AT_ONCE);
console.log(`interop: ${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`);
process.exit(failed === 0 ? 0 : 1);
