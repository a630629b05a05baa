import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { version } from "../../../package.json" with { type: "json" };
import type { Command } from "../../../src/cli/command.ts";
import { runCli } from "../../../src/cli/main.ts";
import { ConfigError } from "../../../src/config/config-error.ts";

/** Starts the program in a process of its own. */
async function collie(args: readonly string[], env: Record<string, string> = {}) {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "run-cli.ts"), ...args], {
    env,
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err, status] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { out, err, status };
}

describe("the program", () => {
  test.each([["version"], ["--version"]])("%s", async (word) => {
    expect(await collie([word])).toEqual({ out: `collie ${version}\n`, err: "", status: 0 });
  });

  test("help goes to stdout when asked for, to stderr with status 2 when no command is given", async () => {
    const asked = await collie(["--help"]);
    expect(asked).toMatchObject({ err: "", status: 0 });
    for (const name of ["serve", "demo", "engine", "config", "systemd"]) expect(asked.out).toContain(`\n  ${name} `);
    expect(await collie([])).toEqual({ out: "", err: asked.out, status: 2 });
  });

  test("help of a command, in all spellings", async () => {
    const { out, status } = await collie(["help", "serve"]);
    expect(status).toBe(0);
    expect(out).toContain("--worker-urls TEXT...");
    for (const args of [
      ["serve", "--help"],
      ["launch", "--port", "1", "-h"],
    ])
      expect((await collie(args)).out).toBe(out);
  });

  test("an unknown command", async () => {
    expect(await collie(["srve"])).toEqual({
      out: "",
      err: 'collie: there is no command "srve"; did you mean serve?\n',
      status: 2,
    });
    expect(await collie(["help", "xyzxyz"])).toMatchObject({ out: "", status: 2 });
  });

  test("parsers and templates that are not there stop the start, for one model as for all", async () => {
    const start = (...args: string[]) => collie(["serve", "--worker-urls", "grpc://127.0.0.1:1", ...args]);
    const card = "--model-card";
    for (const [args, ...problems] of [
      [["--tool-call-parser", "nope"], "There is no tool call parser 'nope'"],
      [[card, "a:tool_parser=nope", "b:chat_template=/no/such.jinja"], "a: There is no tool call", "b: chat_template"],
      [[card, "a:tool_parser=qwen", "--reasoning-parser", "harmony"], "a: The reasoning parser 'harmony' does not go"],
      [[card, "a:alias=x", "b:alias=x", "a:alias=y"], "a has two cards", "x names two models"],
    ] as const) {
      const { out, err, status } = await start(...args);
      expect([out, status]).toEqual(["", 2]);
      expect(err.split("\n")).toHaveLength(problems.length + 1);
      for (const problem of problems) expect(err).toContain(problem);
    }
  });

  test("help tells whose prompts render makes", async () => {
    expect((await collie(["help", "render"])).out).toContain("as transformers makes them");
  });

  test("wrong settings: every problem on a line of its own, status 2", async () => {
    expect(await collie(["config", "--port", "70000"], { COLLIE_LOG_LEVEL: "loud" })).toEqual({
      out: "",
      err: 'collie: --port: 70000 is above 65535\ncollie: COLLIE_LOG_LEVEL: "loud" is not one of debug, info, warn, error\n',
      status: 2,
    });
  });

  test("config checks, and prints on demand; warnings stay off stdout", async () => {
    expect(await collie(["config", "--port", "7"])).toMatchObject({
      out: "The settings are valid. --print shows them.\n",
      status: 0,
    });
    const printed = await collie(["config", "--port", "7", "--print", "--api-key", "s3cret"], { COLLIE_PROT: "1" });
    expect(printed.status).toBe(0);
    expect(printed.out).toContain("\nport: 7  # --port\n");
    expect(printed.out).not.toContain("s3cret");
    expect(printed.err).toContain("COLLIE_PROT");
  });
});

describe("dispatch", () => {
  const calls: unknown[] = [];
  const command = (name: string, extra: Partial<Command> = {}): Command => ({
    name,
    summary: "Test.",
    usage: "",
    load: async () => ({
      run: async (args, env) => {
        calls.push([name, ...args, env]);
        return 7;
      },
    }),
    ...extra,
  });
  const failing = (error: Error) => async () => ({ run: () => Promise.reject(error) });

  test("a command gets its arguments and the environment, and gives the status", async () => {
    const commands = [command("serve", { aliases: ["launch", "start"] }), command("inner", { hidden: true })];
    const env = { A: "b" };
    for (const argv of [["serve", "--x"], ["launch"], ["start", "a", "b"], ["--port", "1"], ["inner", "x"]])
      expect(await runCli(argv, env, commands)).toBe(7);
    expect(calls).toEqual([
      ["serve", "--x", env],
      ["serve", env],
      ["serve", "a", "b", env],
      ["serve", "--port", "1", env],
      ["inner", "x", env],
    ]);
  });

  test("an operator's mistake gives 2, any other error is thrown on", async () => {
    expect(await runCli(["bad"], {}, [command("bad", { load: failing(new ConfigError(["--x: is wrong"])) })])).toBe(2);
    const broken = [command("broken", { load: failing(new TypeError("a bug")) })];
    await expect(runCli(["broken"], {}, broken)).rejects.toThrow("a bug");
  });
});
