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
mkdirSync(join(root, "out"), { recursive: true });

/** Test files of one process. Tokenizers keep one core busy for minutes, and most of the others wait for something: two halves, equal in time. */
interface Shard {
  readonly name: string;
  readonly report: string;
  readonly args: readonly string[];
}
const isInSecond = (path: string): boolean => /^test\/((unit|golden)\/tokenizer|contract)/.test(path);
const shards: readonly Shard[] = exhaustive
  ? [{ name: "tests", report: "junit-exhaustive.xml", args: ["--timeout=600000", "./test/exhaustive/tokenizer.ts"] }]
  : [
      { name: "tests", report: "junit.xml", args: ["--timeout=30000", ...files((path) => !isInSecond(path))] },
      {
        name: "tests of tokenizers and contracts",
        report: "junit-second.xml",
        args: ["--timeout=60000", ...files(isInSecond)],
      },
    ];

function files(wanted: (path: string) => boolean): string[] {
  const found = [...new Bun.Glob("test/**/*.test.ts").scanSync({ cwd: root })].map((path) =>
    path.replaceAll("\\", "/"),
  );
  return found
    .filter((path) => !path.includes("node_modules") && wanted(path))
    .sort()
    .map((path) => `./${path}`);
}

interface Counts {
  readonly passed: number;
  readonly failures: number;
  readonly skipped: number;
}

/** Runs a shard; its output is printed when it is over, unless it is the first. */
async function run({ name, report, args }: Shard, isFirst: boolean): Promise<{ counts: Counts; isGood: boolean }> {
  const file = join(root, "out", report);
  rmSync(file, { force: true });
  const started = performance.now();
  const child = Bun.spawn([process.execPath, "test", "--reporter=junit", `--reporter-outfile=${file}`, ...args], {
    cwd: root,
    stdin: "ignore",
    stdout: isFirst ? "inherit" : "pipe",
    stderr: isFirst ? "inherit" : "pipe",
  });
  const said = isFirst ? [] : await Promise.all([textOf(child.stdout), textOf(child.stderr)]);
  const isGood = (await child.exited) === 0;
  for (const text of said) console.log(text);
  console.log(`${isGood ? "ok    " : "FAILED"} ${name} (${((performance.now() - started) / 1000).toFixed(1)} s)`);
  const xml = (await Bun.file(file).exists()) ? await Bun.file(file).text() : "";
  const failures = attribute(xml, "failures") + attribute(xml, "errors");
  const skipped = attribute(xml, "skipped");
  return { counts: { passed: attribute(xml, "tests") - failures - skipped, failures, skipped }, isGood };
}

const textOf = (stream: ReadableStream<Uint8Array> | number | undefined): Promise<string> =>
  stream instanceof ReadableStream ? new Response(stream).text() : Promise.resolve("");

const results = await Promise.all(shards.map((shard, i) => run(shard, i === 0)));
const sum = (of: (counts: Counts) => number): number => results.reduce((total, { counts }) => total + of(counts), 0);
const passed = sum((counts) => counts.passed);
const skipped = sum((counts) => counts.skipped);
const broken = checks.filter((ok) => !ok).length;
// A test file that cannot be loaded is in no count of the report: only the exit status tells.
const unloaded = results.filter(({ counts, isGood }) => !isGood && counts.failures === 0).length;
const failed = sum((counts) => counts.failures) + broken + unloaded;
console.log(`${passed + checks.length - broken} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`);
process.exit(failed === 0 && passed > 0 ? 0 : 1);
