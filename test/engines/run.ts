/**
 * The compiled gateway in front of real engines on the CPU.
 *
 *   ENGINES=DIR npm run test:engines [-- --engine vllm|mlx] [--only TEXT] [--reuse] [--no-results] [--install]
 *
 *   --engine vllm   compared with the HTTP server of the same vLLM, request by request (the default; ten minutes and more)
 *   --engine mlx    on its own, with servicers of the oldest and the newest protocol (a minute)
 *   --only TEXT     only cases whose name contains TEXT
 *   --reuse         take vLLM's own answers from the last run, where the requests are the same (saves its start)
 *   --no-results    don't write RESULTS.md or RESULTS-mlx.md
 *   --install       MLX: install it first if it is missing; where that can't be done, everything is skipped
 *
 * One server runs at a time. ENGINES is the folder that the set-up script made (default: .cache/engines).
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { installMlx, mlxParts } from "./mlx-run.ts";
import { type CaseResult, type EnginePart, MLX_REPORT, VLLM_REPORT, writeResults } from "./results.ts";
import { enginesFolder, ServerStartError } from "./servers.ts";
import { vllmParts } from "./vllm-run.ts";

const { values: options } = parseArgs({
  args: process.argv.slice(2),
  options: {
    engine: { type: "string", default: "vllm" },
    only: { type: "string" },
    reuse: { type: "boolean", default: false },
    "no-results": { type: "boolean", default: false },
    install: { type: "boolean", default: false },
  },
});

const ENGINES = {
  vllm: {
    program: join("vllm", "bin", "vllm"),
    size: "about 6 GB, 3 GB to download",
    setup: "test/engines/setup-vllm-cpu.sh --real",
    parts: vllmParts,
    report: VLLM_REPORT,
  },
  mlx: {
    program: join("mlx", "bin", "python"),
    size: "about 700 MB with its models",
    setup: "test/engines/setup-mlx-cpu.sh",
    parts: mlxParts,
    report: MLX_REPORT,
  },
};

function fail(message: string): never {
  console.error(`engines: ${message}`);
  process.exit(1);
}

const { engine: name } = options;
if (name !== "vllm" && name !== "mlx") fail(`there is no engine '${name}': vllm or mlx`);
const engine = ENGINES[name];
if (name === "mlx" && options.install) {
  const problem = installMlx();
  if (problem !== undefined) {
    console.log(`skipped: ${problem}`);
    console.log("engines: 0 passed, 0 failed, 1 skipped");
    process.exit(0);
  }
}
if (!existsSync(join(enginesFolder, engine.program)))
  fail(
    `there is no ${name} in ${enginesFolder}.\nInstall it (${engine.size}) with   ${engine.setup}\n` +
      "or set ENGINES to a folder that has it. See docs/engines.md.",
  );

const results: CaseResult[] = [];
async function judge({ model, name: part, run }: EnginePart): Promise<void> {
  if (!existsSync(join(enginesFolder, model, "config.json")))
    fail(`the model ${model} is missing; run ${engine.setup}`);
  const found = await run().catch((error: unknown): CaseResult[] => {
    if (!(error instanceof ServerStartError)) throw error;
    return [{ name: part, faults: error.message.split("\n"), note: undefined }];
  });
  for (const result of found) {
    results.push(result);
    console.log(`${result.faults.length === 0 ? "ok   " : "FAIL "} ${result.name}`);
    for (const fault of result.faults) console.log(`       ${fault}`);
  }
}

for (const part of engine.parts(options)) await judge(part);
if (options.only === undefined && !options["no-results"]) writeResults(engine.report, results);
const failed = results.filter((r) => r.faults.length > 0).length;
console.log(`engines: ${results.length - failed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
