/** The simulated engine against the official stubs: what probe.py sees of it, compared with what it saw of a real vLLM. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { join } from "node:path";
import { gatewayBinary, ServerStartError, startServer } from "../engines/servers.ts";
import realVllm from "../golden/engines/vllm-0.32.json" with { type: "json" };
import { type ProbeRecord, shapeDifferences } from "./shapes.ts";
import type { Suite } from "./suite.ts";

const PROBE_LIMIT_MS = 180_000;

/** Lines of shapes that the real engine has and a simulated one can't. */
const NOT_SIMULATED = new Set([".shm_namespace_id: string"]);

/** How a constrained answer of a random model ends is chance: cut by length, by an EOS of either kind. */
const byChance = (record: ProbeRecord) => record.probe.startsWith("constraint ") && record.status === "OK";

interface ProbeReport {
  readonly records: readonly ProbeRecord[];
  readonly failures: readonly string[];
}

async function probe(python: string, url: string): Promise<ProbeReport> {
  const child = Bun.spawn([python, "-B", join(import.meta.dir, "probe.py"), url.replace("grpc://", "")], {
    stdout: "pipe",
    stderr: "inherit",
    timeout: PROBE_LIMIT_MS,
  });
  const text = await new Response(child.stdout).text();
  equal(await child.exited, 0, "the probe failed");
  return JSON.parse(text) as ProbeReport;
}

export async function simulatorChecks(suite: Suite, python: string): Promise<void> {
  const command = [await gatewayBinary(), "engine", "--dialect", "vllm", "--port", "0"];
  let engine: Awaited<ReturnType<typeof startServer>>;
  try {
    engine = await startServer(command, /(grpc:\/\/[\d.:]+)/, 30_000);
  } catch (error) {
    if (!(error instanceof ServerStartError) || !/not available/.test(error.message)) throw error;
    suite.skipped += realVllm.records.length + 1; // a binary without the simulated engine
    return;
  }
  try {
    let report: ProbeReport = { records: [], failures: [] };
    await suite.check("the probe's own judgement", async () => {
      report = await probe(python, engine.url);
      deepEqual(report.failures, []);
    });
    for (const real of realVllm.records as readonly ProbeRecord[]) {
      await suite.check(`like the real vLLM: ${real.probe}`, () => {
        const ours = report.records.find((r) => r.probe === real.probe);
        ok(ours, "no such record");
        if (byChance(real)) equal(ours.status, real.status);
        else deepEqual(shapeDifferences(real, ours, NOT_SIMULATED), []);
      });
    }
  } finally {
    await engine.stop();
  }
}
