import { afterEach, describe, expect, test } from "bun:test";
import { testHistory } from "../../../support/kept.ts";
import { decodeAll } from "../../generation/demo-tokenizer.ts";
import type { Gateway } from "../../server/gateway.ts";
import { MODEL, modelEntry, startGateway } from "../../server/gateway.ts";
import { play } from "../../server/tool-chat.ts";
import { answered, post, whole } from "../responses/http.ts";
import { cancel, gatewayOver, get, retrieved } from "./support.ts";

let gateway: Gateway;
const answering = (text: string, history = testHistory()): Gateway => {
  gateway = gatewayOver(history, (call) => play([text], call));
  return gateway;
};
afterEach(() => gateway.stop());

const json = (path: string, body: unknown): Promise<Response> =>
  fetch(`${gateway.url}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });

test("a response that was answered is retrieved as it was, and deleted", async () => {
  const told = await whole(answering("Hello"), { metadata: { n: "1" } });
  expect(await retrieved(gateway, told.id)).toEqual(told);
  const response = await get(gateway, told.id, { headers: { "x-request-id": "mine" } });
  expect(response.headers.get("x-request-id")).toBe("mine");
  expect(response.headers.get("content-type")).toStartWith("application/json");
  expect(await answered(await get(gateway, told.id, { method: "DELETE" }))).toEqual({
    id: told.id,
    object: "response",
    deleted: true,
  });
  for (const init of [{}, { method: "DELETE" }])
    expect((await answered(await get(gateway, told.id, init), 404))["error"]).toEqual({
      message: `Response with id '${told.id}' not found.`,
      type: "invalid_request_error",
      param: null,
      code: "not_found",
    });
  expect(gateway.scopes.size).toBe(0);
});

test("what is not in the background is neither cancelled nor streamed again", async () => {
  const { id } = await whole(answering("Hello"), {});
  expect((await answered(await cancel(gateway, id), 400))["error"]).toMatchObject({ code: "failed_precondition" });
  expect((await answered(await get(gateway, `${id}?stream=true`), 400))["error"]).toMatchObject({ param: "stream" });
});

test("ids that are not there, or of another tenant, or of an interaction, are told alike", async () => {
  const { id } = await whole(answering("Hello"), {});
  const history = gateway.history!;
  const row = (await history.getResponse("default", id))!;
  const [foreign, interaction] = [id.replace(/.$/, "x"), id.replace(/.$/, "y")];
  await history.putResponse({ ...row, tenant: "other", id: foreign, itemIds: [] });
  await history.putResponse({ ...row, kind: "interaction", id: interaction, itemIds: [] });
  for (const unknown of [foreign, interaction, "resp_no", "%00", "%ff", "a%0Ab", "x".repeat(2000)])
    for (const [path, init] of [
      ["", {}],
      ["?stream=true", {}],
      ["", { method: "DELETE" }],
      ["/cancel", { method: "POST" }],
      ["/input_items", {}],
    ] as const)
      expect((await answered(await get(gateway, unknown + path, init), 404))["error"]).toMatchObject({
        code: "not_found",
      });
  expect(gateway.scopes.size).toBe(0);
});

test("input items are listed by pages, each way", async () => {
  const input = ["one", "two", "three"].map((content) => ({ role: "user", content }));
  const { id } = await whole(answering("Hello"), { input });
  const list = async (query: string) =>
    (await answered(await get(gateway, `${id}/input_items${query}`))) as {
      data: { id: string; content: { text: string }[] }[];
      first_id: string;
      last_id: string;
      has_more: boolean;
    };
  const texts = ({ data }: Awaited<ReturnType<typeof list>>) => data.map(({ content }) => content[0]!.text);
  const all = await list("");
  expect(all).toMatchObject({ object: "list", has_more: false, first_id: all.data[0]!.id, last_id: all.data[2]!.id });
  expect(all.data[0]).toMatchObject({
    type: "message",
    role: "user",
    status: "completed",
    id: expect.stringMatching(/^msg_/),
  });
  expect(texts(all)).toEqual(["three", "two", "one"]);
  expect(texts(await list("?order=asc"))).toEqual(["one", "two", "three"]);
  const first = await list("?order=asc&limit=2");
  expect([texts(first), first.has_more]).toEqual([["one", "two"], true]);
  const second = await list(`?order=asc&limit=2&after=${first.last_id}`);
  expect([texts(second), second.has_more]).toEqual([["three"], false]);
  for (const [query, param] of [
    ["limit=0", "limit"],
    ["limit=101", "limit"],
    ["limit=x", "limit"],
    ["order=up", "order"],
    ["after=msg_no", "after"],
  ])
    expect((await answered(await get(gateway, `${id}/input_items?${query}`), 400))["error"]).toMatchObject({ param });
  expect((await answered(await get(gateway, `${id}?starting_after=x&stream=true`), 400))["error"]).toMatchObject({
    param: "starting_after",
  });
});

test("input tokens are those that the response then counts", async () => {
  const body = {
    instructions: "Be brief",
    input: "How is the weather?",
    tools: [
      {
        type: "function",
        name: "f",
        parameters: { type: "object", properties: { a: { type: "number" } } },
        strict: null,
      },
    ],
  };
  const told = await whole(answering("Hello"), body);
  const counted = await answered(await json("/v1/responses/input_tokens", { model: MODEL, ...body }));
  expect(counted).toEqual({
    object: "response.input_tokens",
    input_tokens: (told["usage"] as { input_tokens: number }).input_tokens,
  });
  const next = { model: MODEL, previous_response_id: told.id, input: "And?" };
  const more = await answered(await json("/v1/responses/input_tokens", next));
  expect((await whole(gateway, next))["usage"]).toMatchObject({ input_tokens: more["input_tokens"] });
  const { model: _, ...unnamed } = next;
  expect(await answered(await json("/v1/responses/input_tokens", unnamed))).toEqual(more);
  // one that would not fit is counted, too
  const long = await answered(await json("/v1/responses/input_tokens", { model: MODEL, input: "word ".repeat(5000) }));
  expect(long["input_tokens"]).toBeGreaterThan(4096);
  for (const [wrong, status] of [
    [{}, 400],
    [{ model: "no", input: "x" }, 404],
    [{ model: MODEL }, 400],
    [{ model: MODEL, previous_response_id: "resp_no" }, 404],
  ] as const)
    await answered(await json("/v1/responses/input_tokens", wrong), status);
  expect(gateway.scopes.size).toBe(0);
});

test("input tokens of one among several models need its name", async () => {
  gateway = startGateway([], undefined, [modelEntry(), modelEntry({ id: "other", aliases: [] })]);
  const { error } = await answered(await json("/v1/responses/input_tokens", { input: "Hi" }), 400);
  expect(error).toMatchObject({ message: "Missing required parameter: 'model'", param: "model" });
});

describe("compact", () => {
  test("gives the user's messages and a sealed summary, which stands for the rest", async () => {
    const input = [
      { role: "user", content: "Find the bug" },
      { type: "function_call", call_id: "call_1", name: "grep", arguments: "{}" },
      { type: "function_call_output", call_id: "call_1", output: "line 7" },
      { role: "assistant", content: "It is in line 7" },
      { role: "user", content: "Fix it" },
    ];
    answering("SUMMARY: the bug is in line 7");
    const compacted = await answered(await json("/v1/responses/compact", { model: MODEL, input }));
    expect(compacted).toMatchObject({
      id: expect.stringMatching(/^resp_/),
      object: "response.compaction",
      created_at: expect.any(Number),
      usage: { total_tokens: expect.any(Number) },
    });
    const output = compacted["output"] as Record<string, unknown>[];
    expect(output.map(({ type, role }) => [type, role])).toEqual([
      ["message", "user"],
      ["message", "user"],
      ["compaction", undefined],
    ]);
    expect(JSON.stringify(output[2])).not.toContain("line 7");
    await whole(gateway, { input: [...output, { role: "user", content: "Go on" }] });
    const prompt = decodeAll([...gateway.engine.calls.at(-1)!.request.tokenIds], false);
    expect(prompt).toContain("SUMMARY: the bug is in line 7");
    expect(prompt).toContain("Find the bug");
    expect(prompt).not.toContain("grep");
  });

  test("of a stored chain, and one that the model says nothing to", async () => {
    const { id } = await whole(answering("Hello"), { input: "Hi" });
    const compacted = await answered(await json("/v1/responses/compact", { model: MODEL, previous_response_id: id }));
    expect((compacted["output"] as unknown[]).length).toBe(2);
    await gateway.stop();
    answering("<think>\nhm\n</think>");
    const silent = await answered(await json("/v1/responses/compact", { model: MODEL, input: "Hi" }), 502);
    expect(silent["error"]).toMatchObject({ code: "compaction_failed" });
    await answered(await json("/v1/responses/compact", { model: MODEL }), 400);
    expect(gateway.scopes.size).toBe(0);
  });
});

test("paths: a socket is asked for by GET, other methods are told what there is", async () => {
  answering("Hello");
  const upgrade = await fetch(`${gateway.url}/v1/responses`);
  expect([upgrade.status, upgrade.headers.get("upgrade")]).toEqual([426, "websocket"]);
  const wrong = await fetch(`${gateway.url}/v1/responses/resp_1/cancel`);
  expect([wrong.status, wrong.headers.get("allow")]).toEqual([405, "POST"]);
  expect((await post(gateway, { previous_response_id: "resp_no" })).status).toBe(404);
});
