/** Repositories by way of a stand-in hub and a real cache folder. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { textFile } from "./stand-in.ts";
import { COMMIT, ID, NAMES, NEXT_COMMIT, World } from "./world.ts";

let world: World;
beforeEach(() => {
  world = new World();
});
afterEach(() => world.close());

const decode = (bytes: Uint8Array | undefined) => new TextDecoder().decode(bytes);
const resolved = (path: string) => path.includes("/resolve/");

test("fetches what tokenizing needs, and nothing else", async () => {
  const files = await world.fetch();
  expect([...files.keys()]).toEqual(NAMES);
  expect(decode(files.get("config.json"))).toBe('{"vocab_size": 7}');
  expect(files.get("tokenizer.json")?.length).toBe(200_000);
  expect(
    world.hub.seen
      .filter(({ path }) => resolved(path))
      .map(({ path }) => path.split(`${COMMIT}/`)[1])
      .sort(),
  ).toEqual(NAMES);
  expect(world.hub.seen.every(({ encoding }) => encoding === "identity")).toBe(true);
});

test("the cache has the layout of huggingface_hub", async () => {
  await world.fetch();
  const { model } = world;
  expect(readdirSync(world.cache)).toEqual(["models--org--name"]);
  expect(readdirSync(model).sort()).toEqual(["blobs", "refs", "snapshots"]);
  expect(readFileSync(join(model, "refs", "main"), "utf8")).toBe(COMMIT);
  const snapshot = join(model, "snapshots", COMMIT);
  // git hash-object, and sha256sum, of the files' contents
  expect(readlinkSync(join(snapshot, "tokenizer_config.json"))).toBe(
    "../../blobs/9e26dfeeb6e641a33dae4961196235bdb965b21b",
  );
  expect(readlinkSync(join(snapshot, "additional_chat_templates/tools.jinja"))).toMatch(
    /^\.\.\/\.\.\/\.\.\/blobs\/[0-9a-f]{40}$/,
  );
  expect(readlinkSync(join(snapshot, "tokenizer.json"))).toMatch(/^\.\.\/\.\.\/blobs\/[0-9a-f]{64}$/);
  expect(readdirSync(join(model, "blobs")).filter((name) => !/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(name))).toEqual([]);
  expect(statSync(join(model, "blobs", "9e26dfeeb6e641a33dae4961196235bdb965b21b")).mode & 0o777).toBe(
    0o666 & ~process.umask(),
  );
});

test("what is cached is not fetched again, and a new commit costs its changes only", async () => {
  await world.fetch();
  world.hub.takePaths();
  await world.fetch();
  expect(world.hub.takePaths()).toEqual([`/api/models/${ID}/revision/main`]);
  const repository = world.hub.repositories[ID]!;
  repository.commit = NEXT_COMMIT;
  repository.revisions = { [COMMIT]: COMMIT };
  repository.files["config.json"] = textFile('{"vocab_size": 8}');
  const files = await world.fetch();
  expect(decode(files.get("config.json"))).toBe('{"vocab_size": 8}');
  expect(world.hub.takePaths().filter(resolved)).toEqual([`/${ID}/resolve/${NEXT_COMMIT}/config.json`]);
  expect(readFileSync(join(world.model, "refs", "main"), "utf8")).toBe(NEXT_COMMIT);
  expect([...(await world.fetch(`${ID}@${COMMIT}`)).keys()]).toEqual(NAMES); // the old one is still there
});

test("a mirror that lists names only serves as well", async () => {
  world.hub.listsBlobs = false;
  expect([...(await world.fetch()).keys()]).toEqual(NAMES);
  world.hub.takePaths();
  expect([...(await world.fetch()).keys()]).toEqual(NAMES);
  expect(world.hub.takePaths().filter(resolved)).toEqual([]);
});

test("a branch, a tag, a commit", async () => {
  world.hub.repositories[ID]!.revisions = { "v1.0": COMMIT, "refs/pr/3": NEXT_COMMIT };
  await world.fetch(`${ID}@v1.0`);
  await world.fetch(`${ID}@refs/pr/3`);
  await world.fetch(`${ID}@${COMMIT}`);
  expect(world.hub.seen.map(({ path }) => path).filter((path) => path.startsWith("/api/"))).toEqual([
    `/api/models/${ID}/revision/v1.0`,
    `/api/models/${ID}/revision/refs/pr/3`,
    `/api/models/${ID}/revision/${COMMIT}`,
  ]);
  expect(readFileSync(join(world.model, "refs", "v1.0"), "utf8")).toBe(COMMIT);
  expect(readFileSync(join(world.model, "refs", "refs", "pr", "3"), "utf8")).toBe(NEXT_COMMIT);
  expect(readdirSync(join(world.model, "refs")).sort()).toEqual(["refs", "v1.0"]);
});

test("offline takes the cache and asks nobody", async () => {
  await world.fetch();
  world.hub.takePaths();
  world.environment["HF_HUB_OFFLINE"] = "1";
  expect([...(await world.fetch()).keys()]).toEqual(NAMES);
  const error = await world.failure("org/other");
  expect(error).toMatchObject({ name: "HubError", kind: "offline" });
  expect(error.message).toContain("org/other is not in the cache");
  expect(error.message).toContain("HF_HUB_OFFLINE");
  expect(await world.failure(`${ID}@v1`)).toMatchObject({ kind: "offline" });
  expect(world.hub.seen).toEqual([]);
});

test("a cached copy without the tokenizer.json that its commit has is not made do with", async () => {
  await world.fetch();
  const snapshot = join(world.model, "snapshots", COMMIT);
  renameSync(join(snapshot, "tokenizer.json"), join(snapshot, "tokenizer.model"));
  mkdirSync(join(world.model, "trees"));
  const tree = { format_version: 1, files: { "tokenizer.json": { size: 1, blob_id: "x" }, "tokenizer.model": {} } };
  writeFileSync(join(world.model, "trees", `${COMMIT}.json`), JSON.stringify(tree));
  world.environment["HF_HUB_OFFLINE"] = "1";
  expect((await world.failure()).message).toContain("lacks tokenizer.json");
});

test("a hub that is down does not stop who has a copy, and does not keep them", async () => {
  await world.fetch();
  world.hub.takePaths();
  world.log.length = 0;
  world.hub.fault = () => new Response(null, { status: 503 });
  expect([...(await world.fetch()).keys()]).toEqual(NAMES);
  expect(world.hub.takePaths().length).toBe(1); // no second try
  expect(world.log.join("\n")).toMatch(/^warn .*cached copy.*503/);
  const error = await world.failure("org/other");
  expect(error).toMatchObject({ kind: "unreachable" });
  expect(error.message).toContain("(3 tries)");
});

test("a hub that is not there, or does not answer, neither", async () => {
  await world.fetch();
  world.environment["HF_HUB_ETAG_TIMEOUT"] = "0.2";
  const asleep = Promise.withResolvers<undefined>();
  world.hub.fault = () => asleep.promise;
  const started = performance.now();
  expect([...(await world.fetch()).keys()]).toEqual(NAMES);
  expect(performance.now() - started).toBeLessThan(9000); // without it, it would be 10 s
  expect(world.log.at(-1)).toContain("was silent for 0.2 s");
  asleep.resolve(undefined);
  world.environment["HF_ENDPOINT"] = "http://127.0.0.1:1";
  expect([...(await world.fetch()).keys()]).toEqual(NAMES);
  expect(world.log.at(-1)).toContain("127.0.0.1:1 can't be reached");
});

test("an update that breaks off leaves the copy that was there", async () => {
  await world.fetch();
  const repository = world.hub.repositories[ID]!;
  repository.commit = NEXT_COMMIT;
  repository.files["config.json"] = textFile('{"vocab_size": 9}');
  world.hub.fault = (_, { path }) => (path.endsWith("/config.json") ? new Response(null, { status: 500 }) : undefined);
  expect(decode((await world.fetch()).get("config.json"))).toBe('{"vocab_size": 7}');
  expect(readFileSync(join(world.model, "refs", "main"), "utf8")).toBe(COMMIT);
  world.hub.fault = undefined;
  expect(decode((await world.fetch()).get("config.json"))).toBe('{"vocab_size": 9}');
});

test("a first download that broke off goes on where it was", async () => {
  // The last of five, and four are fetched at once: at least one is kept by then.
  world.hub.fault = (_, { path }) =>
    path.endsWith("/tokenizer.json") ? new Response(null, { status: 404 }) : undefined;
  expect(await world.failure()).toMatchObject({ kind: "missing" });
  expect(existsSync(join(world.model, "refs"))).toBe(false);
  expect(existsSync(join(world.model, "snapshots"))).toBe(false); // nobody takes a part for the whole
  const had = readdirSync(join(world.model, "blobs")).length;
  expect(had).toBeGreaterThan(0);
  world.hub.fault = undefined;
  world.hub.takePaths();
  expect([...(await world.fetch()).keys()]).toEqual(NAMES);
  expect(world.hub.takePaths().filter(resolved).length).toBe(NAMES.length - had);
});

test("a blob of another size is replaced", async () => {
  await world.fetch();
  const blob = realpathSync(join(world.model, "snapshots", COMMIT, "config.json"));
  writeFileSync(blob, "{");
  expect(decode((await world.fetch()).get("config.json"))).toBe('{"vocab_size": 7}');
  expect(readFileSync(blob, "utf8")).toBe('{"vocab_size": 7}');
});

// The superuser may write anywhere, so a file in the way stands for a folder that can't be written.
test("where the cache can't be written another one serves, with a warning", async () => {
  mkdirSync(join(world.folder, ".cache"));
  writeFileSync(join(world.folder, ".cache", "huggingface"), "in the way");
  const fallbackDir = join(world.folder, "state", "hub");
  expect([...(await world.fetch(ID, { fallbackDir })).keys()]).toEqual(NAMES);
  expect(world.log.filter((line) => line.startsWith("warn")).length).toBe(1);
  expect(world.log[0]).toMatch(/can't be written.*state\/hub/);
  world.hub.takePaths();
  await world.fetch(ID, { fallbackDir });
  expect(world.hub.takePaths().filter(resolved)).toEqual([]);
  world.environment["HF_HUB_OFFLINE"] = "1";
  expect([...(await world.fetch(ID, { fallbackDir })).keys()]).toEqual(NAMES);
});

test("without any cache the files are in memory only", async () => {
  world.environment["HF_HUB_CACHE"] = "/dev/null/hub";
  expect([...(await world.fetch()).keys()]).toEqual(NAMES);
  expect(world.log[0]).toMatch(/^warn .*nothing is kept/);
});

test.skipIf(process.getuid?.() === 0)("a cache that is complete may be read-only", async () => {
  await world.fetch();
  world.log.length = 0;
  const folders = [world.cache, world.model, ...readdirSync(world.model).map((name) => join(world.model, name))];
  for (const folder of folders) chmodSync(folder, 0o555);
  try {
    expect([...(await world.fetch()).keys()]).toEqual(NAMES);
    expect(world.log).toEqual([]);
  } finally {
    for (const folder of folders) chmodSync(folder, 0o755);
  }
});

test("folders of the cache are paths like others", async () => {
  await world.fetch();
  world.hub.takePaths();
  expect([...(await world.fetch(world.model)).keys()]).toEqual(NAMES);
  expect([...(await world.fetch(`${world.model}/`)).keys()]).toEqual(NAMES);
  expect([...(await world.fetch(join(world.model, "snapshots", COMMIT))).keys()]).toEqual(NAMES);
  rmSync(join(world.model, "refs"), { recursive: true });
  expect([...(await world.fetch(world.model)).keys()]).toEqual(NAMES); // its only commit
  mkdirSync(join(world.model, "snapshots", NEXT_COMMIT));
  expect((await world.failure(world.model)).message).toMatch(new RegExp(`has no main branch.*${COMMIT}`));
  rmSync(join(world.model, "snapshots"), { recursive: true });
  mkdirSync(join(world.model, "snapshots"));
  expect((await world.failure(world.model)).message).toContain("holds no model yet");
  expect(world.hub.seen).toEqual([]);
});

test("what is neither a path nor a repository is told so, and one that is no path says both", async () => {
  expect((await world.failure("./nowhere")).message).toMatch(/does not exist on this machine, and is no repository/);
  expect((await world.failure("org/none")).message).toMatch(
    /^there is no "org\/none" on this machine, and as a repository: /,
  );
  expect(world.hub.seen.every(({ path }) => path.includes("org/none"))).toBe(true);
});

test("names of files that lead elsewhere are not taken", async () => {
  const { files } = world.hub.repositories[ID]!;
  for (const name of [
    "../tokenizer.json",
    "../../x.jinja",
    "/etc/tokenizer.json",
    "additional_chat_templates/../x.jinja",
    "a/b.model",
  ])
    files[name] = textFile("x");
  expect([...(await world.fetch()).keys()]).toEqual(NAMES);
});

test("an etag that leads elsewhere is not taken as the name of a blob", async () => {
  world.hub.listsBlobs = false;
  world.hub.fault = (_, { path }) =>
    path.endsWith("/config.json")
      ? new Response("{}", { headers: { ETag: '"../../../evil"', "X-Repo-Commit": COMMIT } })
      : undefined;
  expect(await world.failure()).toMatchObject({ kind: "broken" });
  expect(existsSync(join(world.folder, "evil"))).toBe(false);
});
