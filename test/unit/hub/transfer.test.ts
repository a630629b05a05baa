/** What goes wrong on the way: redirects, tokens, time limits, damaged answers; over real sockets. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { ID, NAMES, World } from "./world.ts";

let world: World;
beforeEach(() => {
  world = new World();
});
afterEach(() => world.close());

const TOKEN = "hf_of_the_tests";

function only(part: string, answer: (count: number, request: Request) => Response | undefined) {
  let count = 0;
  world.hub.fault = (request, { path }) => (path.includes(part) ? answer(++count, request) : undefined);
  return () => count;
}

test("the token goes to the hub only, not to where it keeps large files", async () => {
  world.environment["HF_TOKEN"] = TOKEN;
  world.hub.repositories[ID]!.needsToken = TOKEN;
  expect([...(await world.fetch()).keys()]).toEqual(NAMES);
  const storage = world.hub.seen.filter(({ server }) => server === "storage");
  expect(storage.map(({ token }) => token)).toEqual([null]);
  const hub = world.hub.seen.filter(({ server }) => server === "hub");
  expect(hub.length).toBe(NAMES.length + 1);
  expect(new Set(hub.map(({ token }) => token))).toEqual(new Set([`Bearer ${TOKEN}`]));
});

test("a redirect inside the hub keeps the token", async () => {
  world.environment["HF_TOKEN"] = TOKEN;
  only(`/api/models/${ID}/revision/main`, (count, request) =>
    count === 1
      ? new Response(null, { status: 307, headers: { Location: `${new URL(request.url).pathname}?blobs=true` } })
      : undefined,
  );
  expect([...(await world.fetch()).keys()]).toEqual(NAMES);
  expect(world.hub.seen.slice(0, 2).map(({ token }) => token)).toEqual([`Bearer ${TOKEN}`, `Bearer ${TOKEN}`]);
});

test("redirects in circles, or to another kind of place, end", async () => {
  only("/api/", (_, request) => new Response(null, { status: 302, headers: { Location: request.url } }));
  expect((await world.failure()).message).toContain("redirects in circles");
  only("/api/", () => new Response(null, { status: 302, headers: { Location: "file:///etc/passwd" } }));
  expect((await world.failure()).message).toContain("not safe to follow");
});

test.each([
  ["no token", undefined, {}, "denied", /no public repository org\/name.*HF_TOKEN/],
  ["a token that may not see it", "hf_other", {}, "missing", /no repository org\/name that the token may see/],
  ["a gated repository", TOKEN, { gated: true }, "denied", /org\/name is gated: accept its terms at .*\/org\/name/],
])("%s is told with what to do", async (_, token, more, kind, message) => {
  Object.assign(world.hub.repositories[ID]!, { needsToken: TOKEN }, more);
  if (token !== undefined) world.environment["HF_TOKEN"] = token;
  const error = await world.failure();
  expect(error).toMatchObject({ name: "HubError", kind });
  expect(error.message).toMatch(message);
  expect(error.message).not.toContain("hf_o");
  expect(world.hub.seen.filter(({ path }) => path.startsWith("/api/")).length).toBe(1); // not tried again
});

test("a token that the hub does not know", async () => {
  world.environment["HF_TOKEN"] = TOKEN;
  only("/api/", () =>
    Response.json({}, { status: 401, headers: { "X-Error-Message": "Invalid credentials in Authorization header" } }),
  );
  expect((await world.failure()).message).toContain("does not accept the token");
});

test("a revision that is not there is told even where an old copy is", async () => {
  await world.fetch();
  world.hub.repositories[ID]!.revisions = { v1: world.hub.repositories[ID]!.commit };
  await world.fetch(`${ID}@v1`);
  world.hub.repositories[ID]!.revisions = {};
  const error = await world.failure(`${ID}@v1`);
  expect(error).toMatchObject({ kind: "revision" });
  expect(error.message).toContain('no revision "v1"');
});

test.each([408, 429, 500, 502, 503, 504])("status %d is tried again, twice", async (status) => {
  const count = only("/api/", (n) => (n < 3 ? new Response(null, { status }) : undefined));
  expect([...(await world.fetch()).keys()]).toEqual(NAMES);
  expect(count()).toBe(3);
  const always = only("/api/", () => new Response(null, { status }));
  world.environment["HF_HUB_CACHE"] = `${world.folder}/empty`;
  const error = await world.failure();
  expect(error.message).toContain(`status ${status} (3 tries)`);
  expect(always()).toBe(3);
});

test("Retry-After is kept to, and not waited for if it is long", async () => {
  let first = 0;
  let second = 0;
  only("/api/", (n) => {
    if (n === 1) first = performance.now();
    else second = performance.now();
    return n === 1 ? new Response(null, { status: 429, headers: { "Retry-After": "1" } }) : undefined;
  });
  await world.fetch();
  expect(second - first).toBeGreaterThan(950);
  world.environment["HF_HUB_CACHE"] = `${world.folder}/empty`;
  const count = only("/api/", () => new Response(null, { status: 429, headers: { "Retry-After": "300" } }));
  const error = await world.failure();
  expect(error.message).toContain("asks to come back in 300 s");
  expect(count()).toBe(1);
});

test("a body that ends early is fetched again", async () => {
  const cut = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      data(socket) {
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100000\r\nETag: "x"\r\n\r\nabc');
        socket.end();
      },
    },
  });
  const count = only("/tokenizer.json", (n) =>
    n < 3 ? new Response(null, { status: 302, headers: { Location: `http://127.0.0.1:${cut.port}/` } }) : undefined,
  );
  expect([...(await world.fetch()).keys()]).toEqual(NAMES);
  expect(count()).toBe(3);
  cut.stop(true);
});

test("a file of another size, or with other bytes of the same size, is never taken", async () => {
  for (const bytes of ["short", "x".repeat(200_000)]) {
    let count = 0;
    world.hub.fault = (_, { server }) => {
      if (server !== "storage") return undefined;
      count++;
      return new Response(bytes);
    };
    const error = await world.failure();
    expect(error).toMatchObject({ kind: "unreachable" });
    expect(error.message).toMatch(
      /tokenizer\.json (?:came with 5 bytes instead of 200000|is not the one that the hub gives)/,
    );
    expect(count).toBe(3);
  }
});

test("a small file whose digest is not git's is not taken", async () => {
  const listed = await fetch(`${world.hub.url}/api/models/${ID}/revision/main`).then((response) => response.json());
  const { blobId, size } = listed.siblings.find(({ rfilename }: { rfilename: string }) => rfilename === "config.json");
  only("/config.json", () => new Response("x".repeat(size), { headers: { ETag: `"${blobId}"` } }));
  expect((await world.failure()).message).toContain("digest of config.json is not the one");
});

test("a body that dries up is given up after the time of silence; a slow one that goes on is not", async () => {
  world.environment["HF_HUB_DOWNLOAD_TIMEOUT"] = "1";
  const bytes = world.hub.repositories[ID]!.files["config.json"]!.bytes;
  const etag = `"${"a".repeat(40)}"`;
  const slow = (pieces: number) =>
    new Response(
      new ReadableStream({
        async start(stream) {
          for (let at = 0; at < pieces; at++) {
            stream.enqueue(bytes.subarray(at, at + 1));
            await Bun.sleep(100);
          }
          if (pieces === bytes.length) stream.close();
        },
      }),
      { headers: { ETag: etag } },
    );
  only("/config.json", () => slow(bytes.length));
  expect([...(await world.fetch()).keys()]).toEqual(NAMES); // takes longer than the time of silence
  world.environment["HF_HUB_CACHE"] = `${world.folder}/empty`;
  only("/config.json", () => slow(3));
  expect((await world.failure(ID, { pausesMs: [] })).message).toContain("was silent for 1 s");
});

test("what is no hub is told so", async () => {
  only("/api/", () => new Response("<html>please log in</html>", { headers: { "Content-Type": "text/html" } }));
  const error = await world.failure();
  expect(error).toMatchObject({ kind: "broken" });
  expect(error.message).toContain("not as a hub does");
});

test("a file that is too large is refused before it is fetched, or while it comes", async () => {
  const { siblings, ...rest } = await fetch(`${world.hub.url}/api/models/${ID}/revision/main`).then((r) => r.json());
  const large = (name: string, size: number) =>
    siblings.map((file: { rfilename: string }) => (file.rfilename === name ? { ...file, size, lfs: undefined } : file));
  only("/api/", () => Response.json({ ...rest, siblings: large("tokenizer.json", 201 << 20) }));
  expect((await world.failure()).message).toMatch(/tokenizer\.json of org\/name has 210763776 bytes/);
  expect(world.hub.seen.filter(({ path }) => path.includes("/resolve/"))).toEqual([]);
  const three = ["tokenizer.json", "config.json", "chat_template.jinja"].reduce(
    (files, name) =>
      files.map((file: { rfilename: string }) =>
        file.rfilename === name ? { ...file, size: 190 << 20, lfs: undefined } : file,
      ),
    siblings,
  );
  only("/api/", () => Response.json({ ...rest, siblings: three }));
  expect((await world.failure()).message).toContain("bytes together");
  only("/config.json", () => {
    const piece = new Uint8Array(8 << 20);
    let left = 27; // 216 MiB
    const body = new ReadableStream({
      pull(stream) {
        if (left-- > 0) stream.enqueue(piece);
        else stream.close();
      },
    });
    return new Response(body, { headers: { ETag: '"x"' } });
  });
  expect((await world.failure(ID, { pausesMs: [] })).message).toContain("has over 209715200 bytes");
}, 20_000);

test("a caller that gives up is heard at once", async () => {
  const gone = new AbortController();
  world.hub.fault = () => new Promise(() => {});
  const waiting = world.failure(ID, { signal: gone.signal });
  await Bun.sleep(20);
  const started = performance.now();
  gone.abort(new Error("stopping"));
  expect((await waiting).message).toBe("stopping");
  expect(performance.now() - started).toBeLessThan(9000); // it would be silent for 10 s
});
