/**
 * The test command: types, format and lint, build, then every test. Ends with one line `N passed, N failed[, N skipped]`.
 *   bun scripts/test.ts                 all of it
 *   bun scripts/test.ts --check         types, format and lint only
 *   bun scripts/test.ts --exhaustive    only what is too long for every run: test/exhaustive
 */
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dir, "..");
const bin = (name: string) => join(root, "node_modules", ".bin", name);

function stage(name: string, command: readonly string[]): boolean {
  const started = performance.now();
  const { exitCode } = Bun.spawnSync([...command], { cwd: root, stdout: "inherit", stderr: "inherit" });
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  console.log(`${exitCode === 0 ? "ok    " : "FAILED"} ${name} (${seconds} s)`);
  return exitCode === 0;
}

const attribute = (xml: string, name: string): number =>
  Number(new RegExp(`<testsuites[^>]* ${name}="(\\d+)"`).exec(xml)?.[1] ?? 0);

const exhaustive = process.argv.includes("--exhaustive");
const checks: boolean[] = [];
if (!exhaustive) {
  checks.push(stage("types", [process.execPath, bin("tsc"), "-p", "."]));
  checks.push(stage("format and lint", [process.execPath, bin("biome"), "check", "."]));
  if (process.argv.includes("--check")) process.exit(checks.every(Boolean) ? 0 : 1);
  checks.push(stage("build", [process.execPath, "build.ts"]));
}
checks.push(stage("tokenizers and texts to test with", [process.execPath, "scripts/fixtures.ts"]));
const report = join(root, "out", exhaustive ? "junit-exhaustive.xml" : "junit.xml");
mkdirSync(join(root, "out"), { recursive: true });
rmSync(report, { force: true });
const tested = stage("tests", [
  process.execPath,
  "test",
  `--timeout=${exhaustive ? 600_000 : 30_000}`,
  "--reporter=junit",
  `--reporter-outfile=${report}`,
  ...(exhaustive ? ["./test/exhaustive/tokenizer.ts"] : ["test"]),
]);

const xml = (await Bun.file(report).exists()) ? await Bun.file(report).text() : "";
const failures = attribute(xml, "failures") + attribute(xml, "errors");
const skipped = attribute(xml, "skipped");
const passed = attribute(xml, "tests") - failures - skipped;
const broken = checks.filter((ok) => !ok).length;
// A test file that cannot be loaded is in no count of the report: only the exit status tells.
const unloaded = !tested && failures === 0 ? 1 : 0;
const failed = failures + broken + unloaded;
console.log(`${passed + checks.length - broken} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`);
process.exit(failed === 0 && passed > 0 ? 0 : 1);
