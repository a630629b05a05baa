/** What holds for every route, whatever its API: failures in the API's own form, with the headers that its clients read. */
import { afterAll, describe, expect, test } from "bun:test";
import { type ErrorFamily, errorFamily } from "../../../src/apis/errors.ts";
import { type Gateway, startGateway } from "../../unit/server/gateway.ts";

const open = startGateway(["--max-payload-size", "2000"]);
const locked = startGateway(["--api-key", "key"]);
const draining = startGateway();
draining.draining = true;
afterAll(() => Promise.all([open.stop(), locked.stop(), draining.stop()]));

interface Route {
  readonly method: string;
  readonly route: string;
  /** A path that belongs to it. */
  readonly path: string;
}
/** Ids of workers must be UUIDs. */
const idIn = (path: string): string => (path.startsWith("/workers") ? "01234567-89ab-4cde-8f01-23456789abcd" : "x_1");
const isPage = (path: string): boolean => /^\/(?:swagger|health|liveness|readiness|$)/.test(path);
const routes: readonly Route[] = (await open.routes()).map(({ method, path }) => ({
  method,
  route: path,
  path: path.replaceAll(/:[a-z_A-Z]+/g, idIn(path)).replace(/\*$/, "x/y"),
}));
const apiRoutes = routes.filter(({ path }) => !isPage(path));
const posts = apiRoutes.filter(({ method }) => method === "POST");

/** The body of a failure, by the families' own documents: exactly these keys, of these types. */
function checkBody(family: ErrorFamily, body: unknown, status: number, id: string): { type: string; message: string } {
  const text = expect.any(String) as string;
  if (family === "anthropic") {
    const found = body as { error: { type: string; message: string } };
    expect<unknown>(found).toEqual({ type: "error", error: { type: text, message: text }, request_id: id });
    expect(found.error.message).not.toBe("");
    return found.error;
  }
  if (family === "google") {
    const found = body as { error: { status: string; message: string } };
    expect<unknown>(found).toEqual({ error: { code: status, status: text, message: text } });
    return { type: found.error.status, message: found.error.message };
  }
  if (family === "workers") {
    const found = body as { error: string; code: string };
    expect<unknown>(found).toEqual({ error: text, code: text });
    return { type: found.code, message: found.error };
  }
  const found = body as { error: { message: string; type: string; param: string | null; code: string | null } };
  expect(Object.keys(found)).toEqual(["error"]);
  expect(Object.keys(found.error).sort()).toEqual(["code", "message", "param", "type"]);
  for (const nullable of [found.error.param, found.error.code])
    expect(nullable === null || typeof nullable === "string").toBe(true);
  expect(found.error.message).toEqual(text);
  return found.error;
}

async function failure(
  gateway: Gateway,
  { path }: Route,
  method: string,
  init: { readonly body?: string; readonly headers?: Record<string, string> } = {},
): Promise<{ status: number; type: string; message: string; headers: Headers; family: ErrorFamily }> {
  const headers = { "x-request-id": "mine-1", ...(init.body !== undefined && { "content-type": "application/json" }) };
  const response = await fetch(gateway.url + path, { method, ...init, headers: { ...headers, ...init.headers } });
  const family = errorFamily(path, new Headers(init.headers));
  expect(response.headers.get("x-request-id")).toBe("mine-1");
  expect(response.headers.get("request-id")).toBe(family === "anthropic" ? "mine-1" : null);
  const { status } = response;
  return { status, ...checkBody(family, await response.json(), status, "mine-1"), headers: response.headers, family };
}

test("the list of routes is that of the app", () => {
  const paths = new Set(apiRoutes.map(({ route }) => route));
  for (const path of ["/v1/chat/completions", "/v1/messages", "/v1/responses", "/v1/models/*", "/rerank"])
    expect([...paths]).toContain(path);
  expect(posts.length).toBeGreaterThan(10);
});

describe.each([...new Set(routes.map(({ path }) => path))])("%s", (path) => {
  // a path may belong to a route with a name and to one with an id in its place
  const isOf = (route: string) => new RegExp(`^${route.replaceAll(/:\w+/g, "[^/]+").replace(/\*$/, ".+")}$`).test(path);
  const allowed = new Set(routes.filter(({ route }) => isOf(route)).map(({ method }) => method));
  const refused = ["GET", "POST", "PUT", "PATCH", "DELETE"].filter((method) => !allowed.has(method));
  test.each(refused)("%s is a 405 that names what is allowed", async (method) => {
    const answer = await failure(open, { method, route: path, path }, method);
    expect(answer.status).toBe(405);
    expect(answer.type).toBe(
      {
        openai: "invalid_request_error",
        anthropic: "invalid_request_error",
        google: "UNIMPLEMENTED",
        workers: "METHOD_NOT_ALLOWED",
      }[answer.family],
    );
    const told = answer.headers.get("allow")?.split(", ") ?? [];
    for (const each of allowed) expect(told).toContain(each);
    expect(told).not.toContain(method);
  });
});

describe("every route of an API", () => {
  test.each(apiRoutes)("$method $path needs the key", async (route) => {
    if (route.method === "HEAD") return;
    const answer = await failure(locked, route, route.method);
    expect(answer.status).toBe(401);
    expect(answer.type).toBe(
      {
        openai: "authentication_error",
        anthropic: "authentication_error",
        google: "UNAUTHENTICATED",
        workers: "INVALID_API_KEY",
      }[answer.family],
    );
    for (const headers of [{ authorization: "Bearer no" }, { "x-api-key": "no" }, { "x-goog-api-key": "no" }])
      expect((await failure(locked, route, route.method, { headers })).status).toBe(401);
    const wrong = { ...route, path: `${route.path}?key=no` };
    expect((await fetch(locked.url + wrong.path, { method: route.method })).status).toBe(401);
  });

  test.each(apiRoutes)("$method $path takes the key in every form", async (route) => {
    const ask = async (path: string, headers: Record<string, string>) => {
      const response = await fetch(locked.url + path, { method: route.method, headers });
      await response.body?.cancel();
      return response.status;
    };
    const forms = [{ authorization: "Bearer key" }, { "x-api-key": "key" }, { "x-goog-api-key": "key" }];
    for (const headers of forms) expect(await ask(route.path, headers)).not.toBe(401);
    expect(await ask(`${route.path}?a=b&key=key`, {})).not.toBe(401);
  });

  test.each(apiRoutes)("$method $path is refused while the gateway drains", async (route) => {
    if (route.method === "HEAD") return;
    const answer = await failure(draining, route, route.method);
    expect(answer.status).toBe(503);
    expect(answer.type).toBe(
      {
        openai: "service_unavailable_error",
        anthropic: "api_error",
        google: "UNAVAILABLE",
        workers: "SHUTTING_DOWN",
      }[answer.family],
    );
    expect(answer.headers.get("retry-after")).toBe("1");
  });
});

describe("every route that takes a body", () => {
  /** Those that read none, or for which an empty one is right. */
  const bodiless = /\/cancel$|\/v1\/conversations$|^\/(?:flush_cache|st(?:art|op)_profile)$/;
  const reading = posts.filter(({ path }) => !bodiless.test(path));
  const invalid = {
    openai: "invalid_request_error",
    anthropic: "invalid_request_error",
    google: "INVALID_ARGUMENT",
    workers: "BAD_REQUEST",
  };

  test.each(reading)("POST $path: no JSON, no object, nothing, another encoding, too much", async (route) => {
    for (const body of ["{", "[1]", "null", '"text"', "", `{"a":${"[".repeat(300)}${"]".repeat(300)}}`]) {
      const answer = await failure(open, route, "POST", { body });
      expect({ body, status: answer.status, type: answer.type }).toEqual({
        body,
        status: 400,
        type: invalid[answer.family],
      });
    }
    const zipped = await failure(open, route, "POST", { body: "{}", headers: { "content-encoding": "gzip" } });
    expect([zipped.status, zipped.type]).toEqual([
      zipped.family === "google" ? 400 : 415,
      zipped.family === "workers" ? "UNSUPPORTED_MEDIA_TYPE" : invalid[zipped.family],
    ]);
    const large = await failure(open, route, "POST", { body: JSON.stringify({ model: "x".repeat(3000) }) });
    expect(large.status).toBe(large.family === "google" ? 400 : 413);
    const own: Partial<typeof invalid> = { anthropic: "request_too_large", workers: "PAYLOAD_TOO_LARGE" };
    expect(large.type).toBe(own[large.family] ?? invalid[large.family]);
  });

  test.each(posts)("POST $path: an empty object is no defect of ours", async (route) => {
    const response = await fetch(open.url + route.path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "{}",
    });
    await response.body?.cancel();
    expect(response.status).toBeLessThan(500);
  });

  test("no scope is left open", async () => {
    await open.scopes.whenIdle();
    expect(open.scopes.size).toBe(0);
  });
});

/** Bodies that are right but for what they name: nothing of it is there. */
const MODEL = "no/such-model";
const user = [{ role: "user", content: "a" }];
const UNKNOWN: Readonly<Record<string, object>> = {
  "/v1/chat/completions": { model: MODEL, messages: user },
  "/v1/completions": { model: MODEL, prompt: "a" },
  "/generate": { model: MODEL, text: "a" },
  "/v1/tokenize": { model: MODEL, prompt: "a" },
  "/tokenize": { model: MODEL, prompt: "a" },
  "/v1/detokenize": { model: MODEL, tokens: [1] },
  "/detokenize": { model: MODEL, tokens: [1] },
  "/v1/embeddings": { model: MODEL, input: "a" },
  "/rerank": { model: MODEL, query: "a", documents: ["b"] },
  "/v1/rerank": { model: MODEL, query: "a", documents: ["b"] },
  "/v1/classify": { model: MODEL, input: "a" },
  "/v1/responses": { model: MODEL, input: "a" },
  "/v1/responses/input_tokens": { model: MODEL, input: "a" },
  "/v1/responses/compact": { model: MODEL, input: "a" },
  "/v1/responses/:id/cancel": {},
  "/v1/conversations/:id": { metadata: {} },
  "/v1/conversations/:id/items": { items: [{ type: "message", role: "user", content: "a" }] },
  "/v1/messages": { model: MODEL, messages: user, max_tokens: 1 },
  "/v1/messages/count_tokens": { model: MODEL, messages: user },
  "/v1/messages/batches/:id/cancel": {},
  "/v1beta/interactions": { model: MODEL, input: "a" },
  "/v1beta/interactions/:id/cancel": {},
  "PUT /workers/:id": { url: "grpc://10.0.0.1:50051" },
  "PATCH /workers/:id": { priority: 1 },
  "/routing/explain": { model: MODEL, prompt: "a" },
  "/start_profile": {},
  "/stop_profile": {},
};
/** Those to which nothing can be unknown, or which answer with what they were asked about. */
const ALWAYS =
  /^\/(?:parse|separate_reasoning|v1\/tokenizers$|v1\/conversations$|v1\/messages\/batches$|workers$|flush_cache)/;

describe("what is not there is told in the API's form by every handler", () => {
  const cases = apiRoutes.filter(
    ({ method, route }) => !ALWAYS.test(route) && (method === "POST" || /[:*]/.test(route)),
  );
  test.each(cases)("$method $route", async (route) => {
    const known = route.route.replace(/^\/v1(?:alpha)?\/interactions/, "/v1beta/interactions");
    const body = UNKNOWN[`${route.method} ${known}`] ?? (route.method === "POST" ? UNKNOWN[known] : undefined);
    if (route.method === "POST" && body === undefined) throw new Error("a body is missing in this test");
    for (const more of route.method === "POST" ? [{}, { stream: true }, { background: true }] : [{}]) {
      const init = body === undefined ? {} : { body: JSON.stringify({ ...body, ...more }) };
      const answer = await failure(open, route, route.method, init);
      expect(answer.status).toBe(404);
      expect(answer.type).toBe(
        {
          openai: "invalid_request_error",
          anthropic: "not_found_error",
          google: "NOT_FOUND",
          workers: known === "/routing/explain" ? "MODEL_NOT_FOUND" : "WORKER_NOT_FOUND",
        }[answer.family],
      );
    }
    await open.scopes.whenIdle();
  });
});

test.each<[string, ErrorFamily]>([
  ["/nowhere", "openai"],
  ["/v1/nowhere", "openai"],
  ["/v1/messages/a/b/c/d", "anthropic"],
  ["/v1beta/nowhere", "google"],
  ["/v1/interactions/a/b/c/d", "google"],
  ["/workers/a/b", "workers"],
])("%s is a 404 in the form of its API", async (path, family) => {
  const answer = await failure(open, { method: "GET", route: path, path }, "GET");
  expect([answer.status, answer.family]).toEqual([404, family]);
  expect(answer.type).toBe(
    {
      openai: "invalid_request_error",
      anthropic: "not_found_error",
      google: "NOT_FOUND",
      workers: "NOT_FOUND",
    }[family],
  );
});
