import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { unitFor } from "../../../src/cli/systemd.ts";
import { ConfigError } from "../../../src/config/config-error.ts";

/** An absolute path that exists, so that systemd-analyze is content. */
const program = [process.execPath];

/** The values of a key in a unit, in order. */
function values(unit: string, key: string): string[] {
  return unit.split("\n").flatMap((line) => (line.startsWith(`${key}=`) ? [line.slice(key.length + 1)] : []));
}

test("the plain unit", () => {
  const unit = unitFor([], program);
  expect(values(unit, "ExecStart")).toEqual([`${process.execPath} serve --config /etc/collie/collie.yaml`]);
  expect(values(unit, "Type")).toEqual(["notify"]);
  expect(values(unit, "TimeoutStopSec")).toEqual(["190"]);
  // The JIT of JavaScript needs pages that are written and run.
  expect(values(unit, "MemoryDenyWriteExecute")).toEqual([]);
});

test("flags become part of it", () => {
  const args = [
    "--worker-urls",
    "grpc://a:1",
    "grpc://b:2",
    "--no-log-json",
    "--shutdown-grace-period-secs",
    "20",
    "--config",
    "/x/c.yaml",
  ];
  const unit = unitFor(args, program);
  expect(values(unit, "ExecStart")).toEqual([
    `${process.execPath} serve --config /x/c.yaml --shutdown-grace-period-secs=20 --worker-urls=grpc://a:1 --worker-urls=grpc://b:2 --no-log-json`,
  ]);
  expect(values(unit, "TimeoutStopSec")).toEqual(["30"]);
});

test("the grace period may come from the file", () => {
  const folder = mkdtempSync(join(tmpdir(), "collie-systemd-"));
  try {
    const path = join(folder, "collie.yaml");
    writeFileSync(path, "unknown: 1\nshutdown-grace-period-secs: 50\n");
    expect(values(unitFor(["--config", path], program), "TimeoutStopSec")).toEqual(["60"]);
    expect(values(unitFor(["--config", path, "--shutdown-grace-period-secs=1"], program), "TimeoutStopSec")).toEqual([
      "11",
    ]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("what systemd would read in another way is escaped", () => {
  const unit = unitFor(["--model-path", `/m/a b%n$HOME"\\'x\n;`], program);
  expect(values(unit, "ExecStart")[0]).toEndWith(String.raw`"--model-path=/m/a b%%n$$HOME\"\\'x\x0a;"`);
});

test("a secret is a credential, never part of the unit", () => {
  const unit = unitFor(["--api-key", "@/etc/collie/api-key"], program);
  expect(values(unit, "LoadCredential")).toEqual(["api-key:/etc/collie/api-key"]);
  expect(values(unit, "ExecStart")[0]).toEndWith(" --api-key=@%d/api-key");
  expect(() => unitFor(["--api-key", "s3cret"], program)).toThrow(ConfigError);
  expect(() => unitFor(["--api-key", "s3cret"], program)).not.toThrow("s3cret");
});

test("wrong flags are refused", () => {
  expect(() => unitFor(["--prot", "1"], program)).toThrow("did you mean --port?");
  expect(() => unitFor(["--port", "70000"], program)).toThrow("above 65535");
});

const analyzer = process.platform === "linux" ? Bun.which("systemd-analyze") : null;
if (analyzer === null) console.warn("SKIPPED: units are not checked by systemd-analyze, it is not installed");

describe.skipIf(analyzer === null)("systemd-analyze", () => {
  /** Runs a verb on a unit file; gives the status and all that was said. */
  async function analyze(unit: string, ...verb: string[]) {
    const folder = mkdtempSync(join(tmpdir(), "collie-systemd-"));
    try {
      const path = join(folder, "collie.service");
      writeFileSync(path, unit);
      const child = Bun.spawn([analyzer as string, ...verb, path], { stdout: "pipe", stderr: "pipe" });
      const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
      // Other units of the machine are none of our business.
      const said = `${out}${err}`.split("\n").filter((line) => line.includes("collie"));
      return { said, status: await child.exited };
    } finally {
      rmSync(folder, { recursive: true });
    }
  }

  const all = ["--api-key=@/etc/collie/api-key", "--model-path", `/m/a b%n$HOME"\\'x;`, "--worker-urls", "grpc://a:1"];
  test.each([[[]], [all]])("verify accepts the unit with %j", async (args: string[]) => {
    expect(await analyze(unitFor(args, program), "verify")).toEqual({ said: [], status: 0 });
  });

  test("verify does see a mistake", async () => {
    const { said } = await analyze(
      unitFor([], program).replace("ProtectSystem=strict", "ProtectSystm=strict"),
      "verify",
    );
    expect(said.join("\n")).toContain("ProtectSystm");
  });
});
