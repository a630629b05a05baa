/** Several processes on one cache. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { createHash, randomBytes } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ID, NAMES, World } from "./world.ts";

let world: World;
beforeEach(() => {
  world = new World();
  for (let i = 0; i < 8; i++)
    world.hub.repositories[ID]!.files[`${i}.tiktoken`] = { bytes: randomBytes(1 << 20), large: i % 2 === 0 };
});
afterEach(() => world.close());

const program = join(import.meta.dir, "fetch-program.ts");
const start = (more: Record<string, string> = {}) =>
  Bun.spawn([process.execPath, program, ID], {
    env: {
      ...process.env,
      ...world.environment,
      HF_TOKEN: undefined,
      HF_HOME: undefined,
      HF_HUB_CACHE: undefined,
      ...more,
    },
    stdout: "pipe",
    stderr: "inherit",
  });

/** Every finished blob has the content that its name is the digest of. */
function checkBlobs(): number {
  const folder = join(world.model, "blobs");
  const names = existsSync(folder) ? readdirSync(folder).filter((name) => !name.endsWith(".incomplete")) : [];
  for (const name of names) {
    const bytes = readFileSync(join(folder, name));
    const hash = name.length === 64 ? createHash("sha256") : createHash("sha1").update(`blob ${bytes.length}\0`);
    expect(hash.update(bytes).digest("hex")).toBe(name);
  }
  return names.length;
}

test("at the same time they all get everything, and leave one whole copy", async () => {
  const all = [start(), start(), start()];
  const texts = await Promise.all(all.map(({ stdout }) => new Response(stdout).text()));
  const { files } = world.hub.repositories[ID]!;
  for (const text of texts) {
    const got = JSON.parse(text) as Record<string, string>;
    expect(Object.keys(got).length).toBe(NAMES.length + 8);
    for (const [name, digest] of Object.entries(got))
      expect([name, digest]).toEqual([name, createHash("sha256").update(files[name]!.bytes).digest("hex")]);
  }
  expect(checkBlobs()).toBe(NAMES.length + 8);
  expect([...new Bun.Glob("**/*.incomplete").scanSync({ cwd: world.model, dot: true })]).toEqual([]);
}, 30_000);

test("one that is killed at any time leaves no damaged file", async () => {
  let killed = 0;
  for (let round = 0; round < 8; round++) {
    const child = start();
    const began = world.hub.seen.length;
    for (let waited = 0; world.hub.seen.length < began + 2 + round && waited < 2000; waited++) await Bun.sleep(1);
    child.kill("SIGKILL");
    await child.exited;
    if (child.signalCode === "SIGKILL") killed++;
    checkBlobs();
  }
  expect(killed).toBeGreaterThan(0);
  expect((await world.fetch()).size).toBe(NAMES.length + 8);
  expect(checkBlobs()).toBe(NAMES.length + 8);
}, 60_000);

test("a proxy of the environment is used, except for hosts that it excludes", async () => {
  // The stand-in is the proxy, too: a hub of a name that nobody can look up is reached through it.
  const child = start({ HF_ENDPOINT: "http://hub.invalid", HTTP_PROXY: world.hub.url, NO_PROXY: "localhost" });
  const got = JSON.parse(await new Response(child.stdout).text()) as object;
  expect(Object.keys(got).length).toBe(NAMES.length + 8);
  expect(world.hub.seen.filter(({ server }) => server === "storage").length).toBe(5); // large files: straight from localhost
}, 30_000);
