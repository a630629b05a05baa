import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { EngineError } from "../../../src/engines/engine.ts";
import { encode, IM_END } from "../generation/demo-tokenizer.ts";
import { ScriptedEngine } from "../generation/scripted-engine.ts";
import { type Gateway, MODEL, modelEntry, rawRequest, startGateway } from "./gateway.ts";

const hello = encode("Hello there");
const answering = () =>
  new ScriptedEngine((call) => {
    call.chunk([...hello, IM_END]).idle();
    call.finish({ completionTokens: hello.length + 1 }).end();
  });
const ask = { model: MODEL, messages: [{ role: "user", content: "Hi" }] };

let open: Gateway;
let locked: Gateway;
beforeAll(() => {
  open = startGateway(["--max-payload-size", "100000"], answering());
  locked = startGateway(["--api-key", "s3cret"], answering());
});
afterAll(() => Promise.all([open.stop(), locked.stop()]));

async function errorOf(response: Response, status: number): Promise<Record<string, unknown>> {
  expect(response.status).toBe(status);
  expect(response.headers.get("content-type")).toStartWith("application/json");
  const body = (await response.json()) as { error: Record<string, unknown> };
  expect(Object.keys(body)).toEqual(["error"]);
  expect(Object.keys(body.error).sort()).toEqual(["code", "message", "param", "type"]);
  expect(response.headers.get("x-request-id")).toBeTruthy();
  return body.error;
}

describe("failures have their status and all four keys", () => {
  const post = (body: string, headers: Record<string, string> = {}) => open.post(body, headers);
  test.each<[string, () => Promise<Response>, number, string, string | null]>([
    ["unknown path", () => fetch(`${open.url}/v1/nothing`), 404, "not_found", null],
    ["unknown path outside", () => fetch(`${open.url}/etc/passwd`), 404, "not_found", null],
    ["wrong method", () => fetch(`${open.url}/v1/chat/completions`), 405, "method_not_allowed", null],
    ["wrong method, id", () => fetch(`${open.url}/v1/models/a/b`, { method: "PUT" }), 405, "method_not_allowed", null],
    ["too large", () => post(`{"a":"${"x".repeat(100_001)}"}`), 413, "payload_too_large", null],
    ["encoded", () => post("{}", { "content-encoding": "gzip" }), 415, "unsupported_media_type", null],
    ["no JSON", () => post("{"), 400, "json_parse_error", null],
    ["empty", () => post(""), 400, "json_parse_error", null],
    ["a list", () => post("[]"), 400, "json_parse_error", null],
    ["no model", () => post('{"messages":[{"role":"user","content":"x"}]}'), 400, "invalid_request", "model"],
    ["no messages", () => post('{"model":"demo","messages":[]}'), 400, "invalid_request", "messages"],
    ["unknown model", () => post(JSON.stringify({ ...ask, model: "x" })), 404, "model_not_found", "model"],
    ["unknown model, GET", () => fetch(`${open.url}/v1/models/no/such`), 404, "model_not_found", "model"],
    ["bad escape in a model", () => fetch(`${open.url}/v1/models/%E0%A4%A`), 404, "model_not_found", "model"],
    ["no key", () => fetch(`${locked.url}/v1/models`), 401, "invalid_api_key", null],
    ["no key, unknown path", () => fetch(`${locked.url}/v1/nothing`), 401, "invalid_api_key", null],
    ["wrong key", () => locked.post(ask, { authorization: "Bearer nope" }), 401, "invalid_api_key", null],
  ])("%s", async (_, send, status, code, param) => {
    expect(await errorOf(await send(), status)).toMatchObject({ code, param });
  });

  test("405 names the methods that are allowed", async () => {
    const response = await fetch(`${open.url}/v1/models/a/b`, { method: "DELETE" });
    expect(response.headers.get("allow")).toBe("GET");
    expect((await fetch(`${open.url}/v1/chat/completions`)).headers.get("allow")).toBe("POST");
  });

  test("401 asks for a bearer key", async () => {
    expect((await fetch(`${locked.url}/v1/models`)).headers.get("www-authenticate")).toBe("Bearer");
  });

  test("while shutting down new requests get 503 and probes tell", async () => {
    const gateway = startGateway([], answering());
    gateway.draining = true;
    const response = await gateway.post(ask);
    expect(response.headers.get("retry-after")).toBe("1");
    expect(await errorOf(response, 503)).toMatchObject({ code: "shutting_down" });
    const ready = await fetch(`${gateway.url}/readiness`);
    expect(ready.status).toBe(503);
    expect(await ready.json()).toMatchObject({ status: "not ready", reason: "draining" });
    expect((await fetch(`${gateway.url}/health`)).status).toBe(200);
    await gateway.stop();
  });

  test.each<[EngineError["kind"], number, string | null, string | null]>([
    ["invalid", 400, null, null],
    ["overloaded", 429, "1", null],
    ["unavailable", 503, "1", null],
    ["timeout", 504, null, null],
    ["not_found", 404, null, null],
    ["unimplemented", 501, null, "false"],
    ["failed", 500, null, "false"],
  ])("an engine's %s is a %d, streamed or not", async (kind, status, retryAfter, shouldRetry) => {
    const gateway = startGateway(
      [],
      new ScriptedEngine((call) => call.end(new EngineError(kind, "told by the engine"))),
    );
    for (const stream of [false, true]) {
      const response = await gateway.post({ ...ask, stream });
      expect(response.headers.get("retry-after")).toBe(retryAfter);
      expect(response.headers.get("x-should-retry")).toBe(shouldRetry);
      await errorOf(response, status);
    }
    expect(gateway.scopes.size).toBe(0);
    expect(gateway.board.running(gateway.slot)).toBe(0);
    await gateway.stop();
  });

  test("a defect of ours is a 500 that says nothing, and the log says it", async () => {
    const gateway = startGateway([], {
      generate: () => {
        throw new Error("secret detail of 10.1.2.3");
      },
    } as unknown as ScriptedEngine);
    for (const stream of [false, true]) {
      const response = await gateway.post({ ...ask, stream });
      const error = await errorOf(response, 500);
      expect(error).toMatchObject({ code: "internal_error", message: "Internal error" });
    }
    expect(gateway.logged.join("")).toContain("secret detail");
    expect(gateway.scopes.size).toBe(0);
    expect(gateway.board.running(gateway.slot)).toBe(0);
    await (gateway.stop as () => Promise<unknown>)().catch(() => undefined);
  });
});

describe("keys", () => {
  test.each([
    [{ authorization: "Bearer s3cret" }],
    [{ authorization: "bearer   s3cret" }],
    [{ "x-api-key": "s3cret" }],
    [{ "x-goog-api-key": "s3cret" }],
  ])("%j opens", async (headers) => {
    expect((await fetch(`${locked.url}/v1/models`, { headers })).status).toBe(200);
  });

  test.each([
    ["/v1/chat/completions", "'Authorization: Bearer KEY'"],
    ["/v1/messages", "'x-api-key: KEY'"],
    ["/v1beta/interactions", "'x-goog-api-key: KEY'"],
  ])("%s without one: what is missing is named as the API's clients send it", async (path, header) => {
    const response = await fetch(locked.url + path, { method: "POST", body: "{}" });
    expect(response.status).toBe(401);
    expect(await response.text()).toContain(header);
  });

  test("probes and the API's page need none", async () => {
    for (const path of ["/health", "/liveness", "/readiness", "/swagger", "/swagger/json"])
      expect((await fetch(locked.url + path)).status).toBe(200);
  });

  test("no Host header and no way of writing a path gets past the check", async () => {
    const hosts = ["localhost", "", "a", "ab", "abc", "abcd", "x/y", "x/v1", "a:1", "[::1]"];
    const paths = [
      "/v1/models",
      "//v1/models",
      "/./v1/models",
      "/a/../v1/models",
      "http://zz/v1/models",
      "/v1//models",
    ];
    for (let n = 0; n < 8; n++) paths.push(`/${"x".repeat(n)}/v1/models`);
    const answers = await Promise.all(
      hosts.flatMap((host) =>
        paths.map((path) =>
          rawRequest(locked.port, `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`),
        ),
      ),
    );
    expect(answers.length).toBe(hosts.length * paths.length);
    for (const answer of answers) expect(answer).toMatch(/^HTTP\/1\.1 40[0134] /);
  });
});

describe("ids and cross-origin", () => {
  test("every response carries an id: the client's, else a new one", async () => {
    for (const path of ["/v1/models", `/v1/models/${MODEL}`, "/health", "/readiness", "/swagger", "/nowhere"]) {
      const fresh = (await fetch(open.url + path)).headers.get("x-request-id");
      expect(fresh).toMatch(/^req-\w{24}$/);
      const given = await fetch(open.url + path, { headers: { "x-correlation-id": "mine-7" } });
      expect(given.headers.get("x-request-id")).toBe("mine-7");
    }
    for (const stream of [false, true]) {
      const given = await open.post({ ...ask, stream }, { "x-request-id": "mine-8" });
      expect(given.headers.get("x-request-id")).toBe("mine-8");
      expect(await given.text()).toContain('"id":"chatcmpl-mine-8"');
    }
    const failed = await open.post({}, { "x-request-id": "mine-9" });
    expect(failed.headers.get("x-request-id")).toBe("mine-9");
  });

  test("preflight and answers name the origin", async () => {
    const gateway = startGateway(["--cors-allowed-origins", "https://app.example"], answering());
    const preflight = (origin: string) =>
      fetch(`${gateway.url}/v1/chat/completions`, {
        method: "OPTIONS",
        headers: { origin, "access-control-request-headers": "authorization, x-stainless-os" },
      });
    const allowed = await preflight("https://app.example");
    expect(allowed.status).toBe(204);
    expect(allowed.headers.get("access-control-allow-origin")).toBe("https://app.example");
    expect(allowed.headers.get("access-control-allow-headers")).toBe("authorization, x-stainless-os");
    expect(allowed.headers.get("vary")).toContain("origin");
    expect((await preflight("https://evil.example")).headers.get("access-control-allow-origin")).toBeNull();

    for (const body of [ask, { ...ask, stream: true }, {}]) {
      const response = await gateway.post(body, { origin: "https://app.example" });
      expect(response.headers.get("access-control-allow-origin")).toBe("https://app.example");
      expect(response.headers.get("access-control-expose-headers")).toBe(
        "x-request-id, request-id, retry-after, x-should-retry, x-collie-worker, x-collie-cached-tokens-predicted, x-collie-cached-tokens",
      );
      expect(response.headers.get("x-request-id")).toBeTruthy();
      await response.text();
    }
    await gateway.stop();
  });

  test("a preflight needs no key", async () => {
    const response = await fetch(`${locked.url}/v1/chat/completions`, {
      method: "OPTIONS",
      headers: { origin: "https://any.example" },
    });
    expect(response.status).toBe(204);
    expect(response.headers.get("access-control-allow-origin")).toBe("*");
  });

  test("HEAD answers as GET does, without a body", async () => {
    for (const path of ["/health", "/v1/models"]) {
      const response = await fetch(open.url + path, { method: "HEAD" });
      expect(response.status).toBe(200);
      expect(await response.text()).toBe("");
    }
  });
});

describe("models", () => {
  test("the list shows ids and aliases", async () => {
    const list = (await (await fetch(`${open.url}/v1/models`)).json()) as { object: string; data: { id: string }[] };
    expect(list.object).toBe("list");
    expect(list.data.map(({ id }) => id)).toEqual([MODEL, "demo"]);
    expect(list.data[1]).toEqual({
      id: "demo",
      object: "model",
      created: 1_700_000_000,
      owned_by: "collie",
      root: MODEL,
      parent: null,
      max_model_len: 4096,
    } as never);
  });

  test.each([MODEL, encodeURIComponent(MODEL), "demo", "org%2fdemo%2Dmodel"])("one by %s", async (id) => {
    const response = await fetch(`${open.url}/v1/models/${id}`);
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({ id: decodeURIComponent(id), root: MODEL });
  });

  test("as Google's clients expect them, page by page", async () => {
    const get = async (path: string) =>
      (await fetch(open.url + path, { headers: { "x-goog-api-client": "google-genai-sdk/1" } })).json();
    const first = await get("/v1/models?pageSize=1");
    expect(first).toMatchObject({ models: [{ name: `models/${MODEL}` }], nextPageToken: "1" });
    expect(await get("/v1/models?pageToken=1")).toEqual({ models: [await get("/v1/models/demo")] });
    expect(await get("/v1/models/un/known")).toMatchObject({ error: { code: 404, status: "NOT_FOUND" } });
  });

  test("an answer repeats the name that the client used", async () => {
    for (const stream of [false, true]) {
      expect(await (await open.post({ ...ask, model: "demo", stream })).text()).toContain('"model":"demo"');
    }
  });

  test("a model whose workers are all away is a 503, and readiness says so", async () => {
    const gateway = startGateway([], answering(), [modelEntry(), modelEntry({ id: "other", aliases: [] })]);
    const response = await gateway.post({ ...ask, model: "other" });
    expect(response.headers.get("retry-after")).toBe("1");
    expect(await errorOf(response, 503)).toMatchObject({ code: "no_available_workers" });
    gateway.board.setState(gateway.slot, 3);
    expect(await (await fetch(`${gateway.url}/readiness`)).json()).toEqual({
      status: "not ready",
      reason: "insufficient healthy workers",
      healthy_workers: 0,
      total_workers: 1,
    });
    await gateway.stop();
  });
});

describe("the API's page", () => {
  test("loads nothing from another host", async () => {
    const page = await (await fetch(`${open.url}/swagger`)).text();
    const linked = [...page.matchAll(/(?:src|href)="([^"]+)"/g)].map((match) => match[1] ?? "");
    expect(linked).toEqual(["/swagger/swagger-ui.css", "/swagger/swagger-ui-bundle.js"]);
    expect(page).not.toMatch(/https?:\/\//);
    for (const path of linked) expect((await fetch(open.url + path)).status).toBe(200);
    const style = await (await fetch(`${open.url}/swagger/swagger-ui.css`)).text();
    expect(style).not.toMatch(/@import|url\(["']?https?:/);
  });

  test("no route serves the plugin's own page, which loads from a CDN", async () => {
    expect((await fetch(`${open.url}/swagger/plugin`)).status).toBe(404);
    const json = await fetch(`${open.url}/swagger/json`);
    expect(json.headers.get("content-type")).toStartWith("application/json");
    const text = await json.text();
    expect(text).not.toMatch(/unpkg|jsdelivr|<html/);
    const document = JSON.parse(text) as {
      paths: Record<string, Record<string, { tags?: string[]; summary?: string }>>;
    };
    for (const [path, methods] of Object.entries(document.paths))
      for (const [method, { tags, summary }] of Object.entries(methods))
        expect({ path, method, tags: tags?.length, told: (summary ?? "") !== "" }).toEqual({
          path,
          method,
          tags: 1,
          told: true,
        });
    const some = [
      "/detokenize",
      "/health",
      "/liveness",
      "/parse/function_call",
      "/parse/reasoning",
      "/parse_function_call",
      "/readiness",
      "/separate_reasoning",
      "/tokenize",
      "/v1/chat/completions",
      "/v1/detokenize",
      "/v1/models",
      "/v1/models/{model}",
      "/v1/tokenize",
      "/v1/tokenizers",
      "/v1/tokenizers/{tokenizer}",
      "/v1/tokenizers/{tokenizer}/status",
    ];
    expect(some.filter((path) => document.paths[path] === undefined)).toEqual([]);
  });
});
