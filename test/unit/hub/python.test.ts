/**
 * The cache between this and Python's huggingface_hub, both ways, against the stand-in hub. Runs only where HUB_PYTHON names a Python
 * that has huggingface_hub (1.33.0 and 2.4.0 when this was written):   HUB_PYTHON=.../bin/python bun test test/unit/hub/python.test.ts
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { hubSettings } from "../../../src/hub/settings.ts";
import { parseRepository } from "../../../src/hub/source.ts";
import { textFile } from "./stand-in.ts";
import { COMMIT, ID, NAMES, NEXT_COMMIT, World } from "./world.ts";

const python = process.env["HUB_PYTHON"];

async function ask<T>(environment: Record<string, string | undefined>, request: object): Promise<T> {
  const script = join(import.meta.dir, "python_hub.py");
  const child = Bun.spawn([python ?? "python3", script, JSON.stringify(request)], {
    env: {
      PATH: process.env["PATH"],
      HF_HUB_DISABLE_PROGRESS_BARS: "1",
      HF_HUB_DISABLE_TELEMETRY: "1",
      ...environment,
    } as Record<string, string>,
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, problem] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  if ((await child.exited) !== 0) throw new Error(problem.trim().split("\n").at(-1));
  return JSON.parse(out);
}

let world: World;
beforeEach(() => {
  world = new World();
});
afterEach(() => world.close());

const digest = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");
const expected = () =>
  Object.fromEntries(NAMES.map((name) => [name, digest(world.hub.repositories[ID]!.files[name]!.bytes)]));
const digestsOf = (files: Map<string, Uint8Array>) =>
  Object.fromEntries([...files].map(([name, bytes]) => [name, digest(bytes)]));
const py = <T>(request: object) => ask<T>(world.environment, { id: ID, names: NAMES, local: true, ...request });
const resolves = () => world.hub.takePaths().filter((path) => path.includes("/resolve/"));

describe.skipIf(python === undefined)("with Python's huggingface_hub", () => {
  test("what we fetched is a snapshot to it, offline", async () => {
    await world.fetch();
    world.hub.takePaths();
    const { folder, files } = await py<{ folder: string; files: object }>({ do: "snapshot" });
    expect(folder).toBe(join(world.model, "snapshots", COMMIT));
    expect(files).toEqual(expected());
    expect(await py<object>({ do: "files" })).toEqual(expected());
    expect(await py<object>({ do: "files", revision: COMMIT })).toEqual(expected());
    expect(world.hub.seen).toEqual([]);
  }, 60_000);

  test("its list of the cache has no complaints about ours", async () => {
    world.hub.repositories[ID]!.revisions = { "v1.0": COMMIT };
    await world.fetch();
    await world.fetch(`${ID}@v1.0`);
    expect(await py<object>({ do: "scan" })).toEqual({
      warnings: [],
      repositories: [
        {
          id: ID,
          type: "model",
          refs: { main: COMMIT, "v1.0": COMMIT },
          files: NAMES.map((name) => name.split("/").at(-1)).sort(),
        },
      ],
    });
  }, 60_000);

  test("online it fetches nothing again that we fetched", async () => {
    await world.fetch();
    world.hub.takePaths();
    expect((await py<{ files: object }>({ do: "snapshot", local: false, allow: NAMES })).files).toEqual(expected());
    expect(resolves()).toEqual([]);
  }, 60_000);

  test("a new commit costs it the changed file only, on top of our blobs", async () => {
    await world.fetch();
    const repository = world.hub.repositories[ID]!;
    repository.commit = NEXT_COMMIT;
    repository.files["config.json"] = textFile("{}  ");
    world.hub.takePaths();
    expect((await py<{ files: object }>({ do: "snapshot", local: false, allow: NAMES })).files).toEqual(expected());
    const bodies = new Set(
      world.hub.seen.filter(({ method }) => method === "GET").map(({ path }) => path.split("/").at(-1)),
    );
    expect(bodies.has("config.json")).toBe(true);
    for (const name of NAMES.filter((each) => each !== "config.json")) expect(bodies.has(name)).toBe(false);
    expect(world.hub.seen.some(({ server }) => server === "storage")).toBe(false);
  }, 60_000);

  test("what it fetched serves us, offline and online, whole repository or only a part", async () => {
    await py({ do: "snapshot", local: false });
    world.hub.takePaths();
    expect(digestsOf(await world.fetch())).toEqual(expected());
    expect(resolves()).toEqual([]);
    expect(digestsOf(await world.fetch(ID, { environment: { ...world.environment, HF_HUB_OFFLINE: "1" } }))).toEqual(
      expected(),
    );
    expect(digestsOf(await world.fetch(world.model))).toEqual(expected());
    expect(world.log).toEqual([]);
  }, 60_000);

  test("what it fetched by single files is completed by us, and then whole to it", async () => {
    await py({ do: "files", local: false, names: ["config.json"] });
    world.hub.takePaths();
    expect(digestsOf(await world.fetch())).toEqual(expected());
    expect(resolves().some((path) => path.endsWith("/config.json"))).toBe(false);
    expect(await py<object>({ do: "files" })).toEqual(expected());
  }, 60_000);

  test("a part that its list of the commit shows to be one is refused offline", async () => {
    await py({ do: "snapshot", local: false, allow: ["config.json"], names: [] });
    expect(existsSync(join(world.model, "trees", `${COMMIT}.json`))).toBe(true);
    world.environment["HF_HUB_OFFLINE"] = "1";
    expect((await world.failure()).message).toContain("lacks tokenizer.json");
  }, 60_000);

  test("both at once on an empty cache", async () => {
    const [ours, theirs, again] = await Promise.all([
      world.fetch(),
      py<{ files: object }>({ do: "snapshot", local: false }),
      world.fetch(),
    ]);
    expect(digestsOf(ours)).toEqual(expected());
    expect(digestsOf(again)).toEqual(expected());
    expect(theirs.files).toEqual(expected());
    expect(readdirSync(join(world.model, "blobs")).filter((name) => name.includes(".incomplete"))).toEqual([]);
    expect((await py<{ warnings: string[] }>({ do: "scan" })).warnings).toEqual([]);
  }, 60_000);

  test("the same names are repositories", async () => {
    const names = [
      "a/b",
      "a",
      "a/b/c",
      "-a/b",
      "a/-b",
      "a/b-",
      "a_/_b",
      "a/.b",
      "a/b.",
      "a--b/c",
      "a/b..c",
      "a/b.git",
      "é/b",
      "a/b c",
      "a/",
      "/a",
      "",
      "_/_",
      "A.b-C/d_E.f",
      `a/${"b".repeat(96)}`,
      `a/${"b".repeat(97)}`,
      "a/b\n",
      "a\\b",
    ];
    const theirs = await py<boolean[]>({ do: "names", names });
    expect(names.map((name) => [name, parseRepository(name) !== undefined])).toEqual(
      names.map((name, at) => [name, theirs[at] as boolean]),
    );
  }, 60_000);

  test("the same environment means the same", async () => {
    const home = world.folder;
    mkdirSync(join(home, "hf"));
    writeFileSync(join(home, "hf", "token"), "hf_of_home\n");
    const cases: Record<string, string>[] = [
      {},
      { XDG_CACHE_HOME: "/x" },
      { HF_HOME: "~/hf" },
      { HF_HOME: "$HOME/hf", HF_TOKEN: "hf_a\n" },
      { HF_HOME: "/f", HF_HUB_CACHE: "$HOME/c", HUGGING_FACE_HUB_TOKEN: "hf_b" },
      { HUGGINGFACE_HUB_CACHE: "~/old", HF_TOKEN_PATH: "~/hf/token" },
      { HF_HOME: "~/hf", HF_HUB_DISABLE_IMPLICIT_TOKEN: "yes" },
      { HF_HUB_OFFLINE: "0", TRANSFORMERS_OFFLINE: "1" },
      { TRANSFORMERS_OFFLINE: "on", HF_ENDPOINT: "http://mirror.example/a/" },
      { HF_HUB_ETAG_TIMEOUT: "3", HF_HUB_DOWNLOAD_TIMEOUT: "70" },
    ];
    for (const environment of cases) {
      const all = { HOME: home, ...environment };
      const theirs = await ask<Record<string, unknown>>(all, { do: "settings" });
      const ours = await hubSettings(all);
      const offline = ours.offline ? { token: theirs["token"] } : {}; // offline nobody needs it, so we do not read it
      expect([
        environment,
        {
          cache: ours.cacheDir,
          endpoint: ours.endpoint,
          offline: ours.offline,
          token: ours.token ?? null,
          etag_timeout: ours.etagTimeoutMs / 1000,
          download_timeout: ours.downloadTimeoutMs / 1000,
          ...offline,
        },
      ]).toEqual([environment, { ...theirs, version: undefined }] as never);
    }
  }, 120_000);
});
