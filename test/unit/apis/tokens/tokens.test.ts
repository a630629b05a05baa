/** The tokenizers' routes over HTTP, with the real tokenizer of the demo's model. Ids come from the golden files of the Rust library. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { loadTokenizer } from "../../../../src/tokenizer/load.ts";
import { demoTokenizer, IM_END } from "../../generation/demo-tokenizer.ts";
import { type Gateway, MODEL, modelEntry, rawRequest, startGateway } from "../../server/gateway.ts";

/** A small tokenizer that puts `<s>`, its token 1, before a text. */
async function withBos() {
  const file = join(import.meta.dir, "../../../golden/tokenizer/small/metaspace_first.json");
  const json = JSON.parse(readFileSync(file, "utf8")) as Record<string, unknown>;
  const bos = { SpecialToken: { id: "<s>", type_id: 0 } };
  const text = (id: string) => ({ Sequence: { id, type_id: 0 } });
  json["post_processor"] = {
    type: "TemplateProcessing",
    single: [bos, text("A")],
    pair: [bos, text("A"), text("B")],
    special_tokens: { "<s>": { id: "<s>", ids: [1], tokens: ["<s>"] } },
  };
  return loadTokenizer(new Map([["tokenizer.json", Buffer.from(JSON.stringify(json))]]));
}

let open: Gateway;
let locked: Gateway;
let two: Gateway;
beforeAll(async () => {
  open = startGateway();
  locked = startGateway(["--api-key", "s3cret"]);
  two = startGateway([], undefined, [
    modelEntry(),
    modelEntry({
      id: "small/bos",
      aliases: ["bos"],
      tokenizer: await withBos(),
      template: undefined,
      contextLength: 0,
    }),
  ]);
});
afterAll(() => Promise.all([open.stop(), locked.stop(), two.stop()]));

const post = (gateway: Gateway, path: string, body: unknown, headers: Record<string, string> = {}) =>
  fetch(gateway.url + path, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
async function answer(response: Response, status = 200): Promise<Record<string, unknown>> {
  const text = await response.text();
  expect([response.status, text]).toEqual([status, text]);
  expect(response.headers.get("content-type")).toStartWith("application/json");
  expect(response.headers.get("x-request-id")).toBeTruthy();
  return JSON.parse(text) as Record<string, unknown>;
}
const refused = async (response: Response, status: number) => {
  const { error } = await answer(response, status);
  expect(Object.keys(error as object).sort()).toEqual(["code", "message", "param", "type"]);
  return error as Record<string, unknown>;
};

describe("tokenize", () => {
  test("a text: ids, count, characters", async () => {
    const body = await answer(await post(open, "/v1/tokenize", { model: MODEL, prompt: "Hello wörld 你好 👍" }));
    expect(body).toEqual({
      tokens: [9707, 289, 9416, 507, 220, 108386, 61804, 235],
      count: 8,
      char_count: 16,
      max_model_len: 4096,
      token_strs: null,
    });
  });

  test("several texts, in order, an empty one among them; strings of the tokens", async () => {
    const prompt = ["Hello there", "", "a<|im_end|>"];
    const body = await answer(await post(open, "/v1/tokenize", { model: "demo", prompt, return_token_strs: true }));
    expect(body).toMatchObject({
      tokens: [[9707, 1052], [], [64, IM_END]],
      count: [2, 0, 2],
      char_count: [11, 0, 11],
      token_strs: [["Hello", " there"], [], ["a", "<|im_end|>"]],
    });
    expect(await answer(await post(open, "/v1/tokenize", { prompt: [] }))).toMatchObject({ tokens: [], count: [] });
    expect(await answer(await post(open, "/v1/tokenize", { prompt: "" }))).toMatchObject({ tokens: [], count: 0 });
  });

  test("special tokens are added by default on vLLM's route only", async () => {
    const ids = async (path: string, more: object) => {
      const body = { model: "bos", prompt: "Hello", ...more };
      return (await answer(await post(two, path, body)))["tokens"] as number[];
    };
    const plain = await ids("/v1/tokenize", {});
    const added = await ids("/tokenize", {});
    expect(plain.length).toBeGreaterThan(0);
    expect(added).toEqual([1, ...plain]);
    expect(await ids("/v1/tokenize", { add_special_tokens: true })).toEqual(added);
    expect(await ids("/tokenize", { add_special_tokens: false })).toEqual(plain);
  });

  test.each(["/v1/tokenize", "/tokenize"])(
    "messages on %s give the prompt that Chat Completions sends",
    async (path) => {
      const messages = [
        { role: "system", content: "Be brief." },
        { role: "user", content: [{ type: "text", text: "Hi" }] },
      ];
      const before = open.engine.calls.length;
      const chat = open.post({ model: MODEL, messages });
      while (open.engine.calls.length === before) await Bun.sleep(1);
      const call = open.engine.calls.at(-1)!;
      const sent = Array.from(call.request.tokenIds);
      call.end();
      await chat;
      const body = await answer(await post(open, path, { model: MODEL, messages }));
      expect(body["tokens"]).toEqual(sent);
      expect(body["count"]).toBe(sent.length);
      const fewer = await answer(await post(open, path, { model: MODEL, messages, add_generation_prompt: false }));
      expect(fewer["count"]).toBeLessThan(sent.length);
      expect(sent.slice(0, fewer["count"] as number)).toEqual(fewer["tokens"] as number[]);
      const thinking = { chat_template_kwargs: { enable_thinking: false } };
      expect((await answer(await post(open, path, { model: MODEL, messages, ...thinking })))["count"]).toBeGreaterThan(
        sent.length,
      );
    },
  );

  test("a final message that goes on", async () => {
    const messages = [
      { role: "user", content: "Hi" },
      { role: "assistant", content: "Hello the" },
    ];
    const body = await answer(
      await post(open, "/v1/tokenize", { messages, continue_final_message: true, add_generation_prompt: false }),
    );
    expect((body["tokens"] as number[]).at(-1)).toBe(demoTokenizer.encode("Hello the").at(-1)!);
  });

  test("a long text is encoded elsewhere, with the same ids", async () => {
    const prompt = "Long texts are tokenized on a compute thread. 你好 ".repeat(20_000);
    const body = await answer(await post(open, "/v1/tokenize", { prompt }));
    expect(body["tokens"]).toEqual(Array.from(demoTokenizer.encode(prompt)));
    expect(body["char_count"]).toBe(prompt.length);
  });

  test("lone surrogates count as U+FFFD", async () => {
    const body = await answer(await post(open, "/v1/tokenize", '{"prompt":"a\\ud800b"}'));
    expect(body["tokens"]).toEqual(Array.from(demoTokenizer.encode("a\ufffdb")));
    expect(body["char_count"]).toBe(3);
  });

  test("tools of a request reach the prompt with their numbers and the order of keys", async () => {
    const tools =
      '[{"type": "function", "function": {"name": "f", "parameters": {"b": 1.0, "2": 12345678901234567890, "1": 1}}}]';
    const request = `{"messages": [{"role": "user", "content": "a"}], "tools": ${tools}}`;
    const body = await answer(await post(open, "/v1/tokenize", request));
    const decoder = demoTokenizer.decoder({ skipSpecialTokens: false });
    const text = (body["tokens"] as number[]).map((id) => decoder.push(id)).join("") + decoder.end();
    expect(text).toContain(`<tools>\n${tools.slice(1, -1)}\n</tools>`);
  });

  test.each<[string, unknown, number, string, string | null]>([
    ["no prompt", { model: MODEL }, 400, "invalid_request", "prompt"],
    ["a number", { model: MODEL, prompt: 5 }, 400, "invalid_request", "prompt"],
    ["a number in a list", { model: MODEL, prompt: ["a", 5] }, 400, "invalid_request", "prompt[1]"],
    [
      "both",
      { model: MODEL, prompt: "a", messages: [{ role: "user", content: "a" }] },
      400,
      "invalid_request",
      "messages",
    ],
    ["tools", { messages: [{ role: "user", content: "a" }], tools: [{}] }, 400, "invalid_request", "tools[0].type"],
    ["a wrong message", { messages: [{ role: "nobody", content: "a" }] }, 400, "invalid_request", "messages[0].role"],
    ["no messages", { messages: [] }, 400, "invalid_request", "messages"],
    ["an unknown model", { model: "no/such", prompt: "a" }, 404, "model_not_found", "model"],
    ["no JSON", "{", 400, "json_parse_error", null],
  ])("refuses %s", async (_, body, status, code, param) => {
    for (const path of ["/v1/tokenize", "/tokenize"])
      expect(await refused(await post(open, path, body), status)).toMatchObject({ code, param });
    expect(open.scopes.size).toBe(0);
  });

  test("among several models one must be named; one without a template takes no messages", async () => {
    expect(await refused(await post(two, "/v1/tokenize", { prompt: "a" }), 400)).toMatchObject({ param: "model" });
    const messages = [{ role: "user", content: "a" }];
    const error = await refused(await post(two, "/v1/tokenize", { model: "small/bos", messages }), 400);
    expect(error).toMatchObject({ param: "model", message: "The tokenizer 'small/bos' has no chat template" });
  });

  test("a refusal does not repeat the text", async () => {
    const secret = "a-very-secret-word";
    for (const body of [
      { prompt: { secret } },
      { prompt: [secret, 1] },
      { prompt: secret, messages: [{ role: secret }] },
    ])
      expect(await (await post(open, "/v1/tokenize", body)).text()).not.toContain(secret);
  });
});

describe("detokenize", () => {
  test("SMG's form skips special tokens, vLLM's keeps them", async () => {
    const tokens = [9707, 1052, IM_END];
    expect(await answer(await post(open, "/v1/detokenize", { model: "demo", tokens }))).toEqual({
      text: "Hello there",
    });
    expect(await answer(await post(open, "/detokenize", { tokens }))).toEqual({ prompt: "Hello there<|im_end|>" });
    const kept = { tokens, skip_special_tokens: false };
    expect(await answer(await post(open, "/v1/detokenize", kept))).toEqual({ text: "Hello there<|im_end|>" });
  });

  test("several lists; none; characters in parts, and unfinished ones", async () => {
    const tokens = [[123893, 111], [], [123893], [9707]];
    expect(await answer(await post(open, "/v1/detokenize", { tokens }))).toEqual({
      text: ["𝒳", "", "\ufffd", "Hello"],
    });
    expect(await answer(await post(open, "/v1/detokenize", { tokens: [] }))).toEqual({ text: "" });
    expect(await answer(await post(open, "/v1/detokenize", { tokens: [[]] }))).toEqual({ text: [""] });
  });

  test("a long list comes back as the text it was", async () => {
    const text = 'Text with "quotes", \n lines, 你好 and 👍. '.repeat(5000);
    const tokens = Array.from(demoTokenizer.encode(text));
    expect(await answer(await post(open, "/v1/detokenize", { tokens }))).toEqual({ text });
  });

  test("ids that the vocabulary lacks decode to nothing", async () => {
    const tokens = [9707, 160_000, 2 ** 31, 2 ** 32 - 1, 1052];
    expect(await answer(await post(open, "/v1/detokenize", { tokens }))).toEqual({ text: "Hello there" });
  });

  test.each<[string, unknown, string]>([
    ["nothing", {}, "tokens"],
    ["null", { tokens: null }, "tokens"],
    ["a text", { tokens: "1" }, "tokens"],
    ["a negative id", { tokens: [1, -1] }, "tokens[1]"],
    ["a fraction", { tokens: [1.5] }, "tokens[0]"],
    ["more than 32 bits", { tokens: [2 ** 32] }, "tokens[0]"],
    ["a string as id", { tokens: [1, "2"] }, "tokens[1]"],
    ["a list among ids", { tokens: [1, [2]] }, "tokens[1]"],
    ["an id among lists", { tokens: [[1], 2] }, "tokens[1]"],
    ["a wrong id in a list", { tokens: [[1], [2, -1]] }, "tokens[1][1]"],
  ])("refuses %s", async (_, body, param) => {
    for (const path of ["/v1/detokenize", "/detokenize"])
      expect(await refused(await post(open, path, body), 400)).toMatchObject({ code: "invalid_request", param });
    expect(open.scopes.size).toBe(0);
  });
});

describe("keys", () => {
  const routes = ["/v1/tokenize", "/tokenize", "/v1/detokenize", "/detokenize", "/v1/tokenizers"];
  test.each(routes)("%s needs one", async (path) => {
    expect(await refused(await post(locked, path, { prompt: "a", tokens: [1] }), 401)).toBeTruthy();
    const key = { authorization: "Bearer s3cret" };
    expect((await post(locked, path, { prompt: "a", tokens: [1], name: 1 }, key)).status).not.toBe(401);
  });

  test("no way of writing the path gets past it", async () => {
    const body = JSON.stringify({ prompt: "a" });
    const paths = [
      "/tokenize",
      "/tokenize/",
      "//tokenize",
      "/%74okenize",
      "/./tokenize",
      "/health/../tokenize",
      "/tokenize?x",
    ];
    for (const path of [...paths, "http://x/tokenize", "/Tokenize", "/health#/tokenize", "/tokenize;a"]) {
      const text = await rawRequest(
        locked.port,
        `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
      );
      expect(`${path} ${text}`).not.toContain('"tokens"');
    }
  });

  test("the wrong method is told", async () => {
    const response = await fetch(`${open.url}/tokenize`);
    expect(await refused(response, 405)).toMatchObject({ code: "method_not_allowed" });
    expect(response.headers.get("allow")).toBe("POST");
  });
});
