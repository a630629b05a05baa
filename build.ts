/**
 * Builds dist/collie: one file with everything in it.   bun build.ts [--target bun-linux-arm64] [--outfile FILE]
 * Kept out: .env and bunfig.toml of the folder it is started in, which could otherwise run code in the gateway.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { makeDemoModel } from "./scripts/demo-model.ts";

const { values } = parseArgs({ options: { target: { type: "string" }, outfile: { type: "string" } } });
const root = import.meta.dir;
const outfile =
  values.outfile ?? join(root, "dist", values.target === undefined ? "collie" : `collie-${values.target}`);
const demoModel = join(root, ".cache", "demo-model.bin");
mkdirSync(join(root, "dist"), { recursive: true });
mkdirSync(join(root, ".cache"), { recursive: true });
await makeDemoModel(demoModel);

const { exitCode } = Bun.spawnSync(
  [
    process.execPath,
    "build",
    "--compile",
    "--minify",
    "--keep-names", // error classes go to the log by name
    "--sourcemap",
    "--bytecode",
    "--format=esm",
    "--no-compile-autoload-dotenv",
    "--no-compile-autoload-bunfig",
    ...(values.target === undefined ? [] : [`--target=${values.target}`]),
    "src/main.ts",
    // Every worker is an entry point of its own, and so is a file that only has to come along, or that few need.
    "src/threads/serving-thread.ts",
    "src/threads/compute-thread.ts",
    "src/history/thread.ts",
    // Compiled into the program, it would be read at every start.
    "src/fleet/discovery/kubernetes/kube-config.ts",
    demoModel,
    "--outfile",
    outfile,
  ],
  { cwd: root, stdout: "inherit", stderr: "inherit" },
);
if (exitCode === 0) console.log(outfile);
process.exit(exitCode);
