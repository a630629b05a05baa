import { afterEach, describe, expect, test } from "bun:test";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chosenHistory, sealingKey } from "../../../src/cli/history-setting.ts";
import { stateFolder } from "../../../src/cli/state-folder.ts";
import { resolveOptions } from "../../../src/config/resolve.ts";
import { serveOptions } from "../../../src/config/serve-options.ts";
import { HistorySetupError } from "../../../src/history/errors.ts";
import { parseHistoryUrl } from "../../../src/history/location.ts";

const folders: string[] = [];
function folder(): string {
  const made = mkdtempSync(join(tmpdir(), "collie-history-"));
  folders.push(made);
  return made;
}
afterEach(() => {
  for (const each of folders.splice(0)) rmSync(each, { recursive: true, force: true });
});

const chosen = (args: string[], state: string | undefined = "/state dir/50%", threads = 4) =>
  chosenHistory(resolveOptions(serveOptions, { args, env: {} }).values, state, threads);

describe("the history's setting", () => {
  test("by default is a file in the state directory, and memory where there is none", () => {
    const { setting, byDefault } = chosen([]);
    expect(parseHistoryUrl(setting.url)).toEqual({ type: "sqlite", path: "/state dir/50%/history.db" });
    expect(byDefault).toBe(true);
    const none = chosenHistory(resolveOptions(serveOptions, { args: [], env: {} }).values, undefined, 1);
    expect(none).toMatchObject({ setting: { url: "memory" }, byDefault: true });
  });

  test.each<[string[], string]>([
    [["--history-url", "memory:"], "memory:"],
    [["--history-url", "redis://h:1/2"], "redis://h:1/2"],
    [["--history-backend", "none"], "none"],
    [["--history-backend", "memory"], "memory"],
    [["--history-backend", "postgres", "--postgres-db-url", "postgres://u:p@h/d"], "postgres://u:p@h/d"],
    [["--history-backend", "redis", "--redis-url", "valkey://h"], "valkey://h"],
  ])("%p", (args, url) => {
    expect(chosen(args)).toMatchObject({ setting: { url }, byDefault: false });
  });

  test.each<[string[], RegExp]>([
    [["--history-url", "memory:", "--history-backend", "memory"], /exclude each other/],
    [["--history-url", "oracle://h"], /^--history-url: .* must be none, memory:/],
    [["--history-backend", "postgres"], /needs --postgres-db-url/],
    [["--history-backend", "redis", "--redis-url", "postgres://secret@h/d"], /--redis-url: is no URL of redis/],
    [["--schema-config", "/nowhere/x.yaml"], /--schema-config: "\/nowhere\/x.yaml"/],
  ])("%p is refused", (args, message) => {
    expect(() => chosen(args)).toThrow(message);
    expect(() => chosen(args)).toThrow(HistorySetupError);
    expect(() => chosen(args)).not.toThrow(/secret/);
  });

  test("threads share the connections, one each at least", () => {
    const connections = (args: string[], threads: number) => chosen(args, "/s", threads).setting.maxConnections;
    expect(connections([], 4)).toBe(4);
    expect(connections(["--postgres-pool-max", "3"], 2)).toBe(1);
    expect(connections(["--postgres-pool-max-size", "3"], 8)).toBe(1);
  });

  test("names of tables come from a YAML file in SMG's form", () => {
    const path = join(folder(), "schema.yaml");
    writeFileSync(path, "version: 3\nresponses:\n  table: answers\n  columns: {model: model_name}\n");
    expect(chosen(["--schema-config", path]).setting.schema).toEqual({
      version: 3,
      responses: { table: "answers", columns: { model: "model_name" } },
    });
    writeFileSync(path, "answers: {}\n");
    expect(() => chosen(["--schema-config", path])).toThrow(/unknown key 'answers'/);
    writeFileSync(path, "a: [");
    expect(() => chosen(["--schema-config", path])).toThrow(HistorySetupError);
  });
});

describe("the state directory", () => {
  test.each<[string | undefined, Record<string, string>, string | undefined]>([
    ["/given", { STATE_DIRECTORY: "/systemd" }, "/given"],
    [undefined, { STATE_DIRECTORY: "/systemd:/other", XDG_STATE_HOME: "/x" }, "/systemd"],
    [undefined, { XDG_STATE_HOME: "/x", HOME: "/home/u", CACHE_DIRECTORY: "/cache" }, "/x/collie"],
    [undefined, { HOME: "/home/u" }, "/home/u/.local/state/collie"],
    [undefined, { HOME: "/" }, undefined],
  ])("%p %j", (given, env, expected) => {
    expect(stateFolder(given, env)).toBe(expected);
  });
});

describe("the key of seals", () => {
  test("is made once, for its owner alone", () => {
    const state = join(folder(), "a", "b");
    const key = sealingKey(undefined, state);
    expect(key).toHaveLength(32);
    expect(sealingKey(undefined, state)).toEqual(key);
    expect(readdirSync(state)).toEqual(["seal.key"]);
    expect(statSync(join(state, "seal.key")).mode & 0o777).toBe(0o600);
    expect(readFileSync(join(state, "seal.key"), "utf8")).toBe(`${Buffer.from(key).toString("hex")}\n`);
    expect(sealingKey(undefined, folder())).not.toEqual(key);
  });

  test("the given one holds; without a folder there is one for this process", () => {
    expect(sealingKey("geheim", folder())).toEqual(new TextEncoder().encode("geheim"));
    expect(sealingKey(undefined, undefined)).not.toEqual(sealingKey(undefined, undefined));
  });

  test("processes that start at once agree on one", async () => {
    const state = folder();
    const script = `import { sealingKey } from ${JSON.stringify(join(import.meta.dir, "../../../src/cli/history-setting.ts"))};
      console.log(Buffer.from(sealingKey(undefined, ${JSON.stringify(state)})).toString("hex"));`;
    const children = Array.from({ length: 4 }, () => Bun.spawn([process.execPath, "-e", script], { stdout: "pipe" }));
    const keys = await Promise.all(children.map(({ stdout }) => new Response(stdout).text()));
    expect(new Set(keys).size).toBe(1);
    expect(keys[0]?.trim()).toMatch(/^[0-9a-f]{64}$/);
    expect(readdirSync(state)).toEqual(["seal.key"]);
  });

  test("a file of another kind, or a folder that takes none, is an error that says which", () => {
    const state = folder();
    writeFileSync(join(state, "seal.key"), "something else\n");
    expect(() => sealingKey(undefined, state)).toThrow(/seal\.key": is not one of ours/);
    rmSync(join(state, "seal.key"));
    writeFileSync(join(state, "file"), "");
    expect(() => sealingKey(undefined, join(state, "file", "below"))).toThrow(HistorySetupError);
    chmodSync(state, 0o700);
  });
});
