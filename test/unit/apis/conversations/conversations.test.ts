import { afterEach, expect, test } from "bun:test";
import type { TSchema } from "@sinclair/typebox";
import { conversation, deleted, item, itemList } from "../../../support/schemas/conversations.ts";
import { check } from "../../../support/schemas/responses.ts";
import { decodeAll } from "../../generation/demo-tokenizer.ts";
import type { Gateway } from "../../server/gateway.ts";
import { play } from "../../server/tool-chat.ts";
import { answered, post, whole } from "../responses/http.ts";
import { gatewayOver } from "../responses-store/support.ts";

let gateway: Gateway;
const begin = (): void => {
  gateway = gatewayOver(undefined, (call) => play(["Hello"], call));
};
afterEach(async () => {
  expect(gateway.scopes.size).toBe(0);
  await gateway.stop();
});

interface Body {
  readonly id: string;
  readonly data: readonly { readonly id: string; readonly content: readonly { readonly text: string }[] }[];
  readonly [member: string]: unknown;
}

async function call(method: string, path: string, schema: TSchema, body?: object): Promise<Body> {
  const value = await answered(await raw(method, path, body));
  check(schema, value, `${method} ${path}`);
  return value as unknown as Body;
}
const raw = (method: string, path: string, body?: object): Promise<Response> =>
  fetch(`${gateway.url}/v1/conversations${path}`, {
    method,
    ...(body && { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
  });
const texts = ({ data }: Body): string[] => data.map(({ content }) => content[0]!.text);
const user = (content: string) => ({ role: "user", content });

test("a conversation is made, read, renamed and deleted", async () => {
  begin();
  check(conversation, await answered(await raw("POST", "")), "no body");
  const made = await call("POST", "", conversation, { metadata: { topic: "a" } });
  expect(made["metadata"]).toEqual({ topic: "a" });
  expect(await call("GET", `/${made.id}`, conversation)).toEqual(made);
  const renamed = await call("POST", `/${made.id}`, conversation, { metadata: { other: "b" } });
  expect(renamed).toEqual({ ...made, metadata: { other: "b" } });
  expect((await call("POST", `/${made.id}`, conversation, { metadata: null }))["metadata"]).toEqual({});
  expect((await call("DELETE", `/${made.id}`, deleted)).id).toBe(made.id);
  for (const [method, path, body] of [
    ["GET", "", undefined],
    ["POST", "", { metadata: {} }],
    ["DELETE", "", undefined],
    ["GET", "/items", undefined],
    ["POST", "/items", { items: [user("x")] }],
    ["GET", "/items/msg_1", undefined],
    ["DELETE", "/items/msg_1", undefined],
  ] as const)
    expect((await answered(await raw(method, `/${made.id}${path}`, body), 404))["error"]).toMatchObject({
      message: `Conversation with id '${made.id}' not found.`,
      code: "not_found",
    });
});

test("items are added to the end, listed by pages, read and removed", async () => {
  begin();
  const { id } = await call("POST", "", conversation, { items: [user("one"), user("two")] });
  const call_ = { type: "function_call", call_id: "call_1", name: "f", arguments: '{"n": 1.0}' };
  const added = await call("POST", `/${id}/items?include=x`, itemList, { items: [user("three"), call_] });
  expect(added).toMatchObject({ has_more: false, first_id: added.data[0]!.id, last_id: added.data[1]!.id });
  expect(added.data).toMatchObject([
    { type: "message", status: "completed", role: "user", content: [{ type: "input_text", text: "three" }] },
    { ...call_, id: expect.stringMatching(/^fc_/) },
  ]);
  const newest = await call("GET", `/${id}/items?limit=3`, itemList);
  expect(newest.data.map((each) => each.id).slice(0, 2)).toEqual(added.data.map((each) => each.id).toReversed());
  expect(newest["has_more"]).toBe(true);
  const first = await call("GET", `/${id}/items?order=asc&limit=2`, itemList);
  expect(texts(first)).toEqual(["one", "two"]);
  const rest = await call("GET", `/${id}/items?order=asc&after=${first["last_id"]}`, itemList);
  expect(rest.data).toEqual(added.data);
  const one = first.data[0]!.id;
  expect(await call("GET", `/${id}/items/${one}`, item)).toEqual(first.data[0] as unknown as Body);
  expect((await call("DELETE", `/${id}/items/${one}`, conversation)).id).toBe(id);
  for (const method of ["GET", "DELETE"])
    expect((await answered(await raw(method, `/${id}/items/${one}`), 404))["error"]).toMatchObject({
      message: `Item with id '${one}' not found.`,
    });
  expect(texts(await call("GET", `/${id}/items?order=asc&limit=1`, itemList))).toEqual(["two"]);
});

test("ids that clients choose are replaced: each item is its own, in this conversation and in others", async () => {
  begin();
  const said = (content: string) => ({ type: "message", id: "msg_u", ...user(content) });
  const first = await call("POST", "", conversation, { items: [said("ALICE SECRET")] });
  const second = await call("POST", "", conversation, { items: [said("bob")] });
  await call("POST", `/${second.id}/items`, itemList, { items: [said("carol")] });
  await whole(gateway, { conversation: second.id, input: [said("dan")] });
  await whole(gateway, { conversation: second.id, input: [said("eve")] });
  expect(texts(await call("GET", `/${first.id}/items`, itemList))).toEqual(["ALICE SECRET"]);
  const all = await call("GET", `/${second.id}/items?order=asc`, itemList);
  expect(texts(all)).toEqual(["bob", "carol", "dan", "Hello", "eve", "Hello"]);
  for (const { id } of all.data) expect(id).toMatch(/^msg_[0-9a-f]{50}$/);
  expect(
    (await answered(await post(gateway, { input: [{ type: "item_reference", id: "msg_u" }] }), 404))["error"],
  ).toBeObject();
});

test("ids that no store could hold are replaced, too, and are told as unknown where they are asked for", async () => {
  begin();
  for (const odd of ["x".repeat(600), "a\u0000b", "\ud800"]) {
    const items = [
      { id: odd, ...user("one") },
      { type: "web_search_call", id: odd, status: "completed" },
    ];
    const { id } = await call("POST", "", conversation, { items });
    const told = await whole(gateway, { conversation: id, input: items });
    expect(told.status).toBe("completed");
    const { data } = await call("GET", `/${id}/items?order=asc`, itemList);
    expect(data.map((each) => each.id.replace(/[0-9a-f]{50}$/, ""))).toEqual([
      "msg_",
      "item_",
      "msg_",
      "item_",
      "msg_",
    ]);
    await answered(await post(gateway, { input: [{ type: "item_reference", id: odd }] }), 404);
    await answered(await post(gateway, { conversation: odd }), 404);
    if (odd.isWellFormed()) await answered(await raw("GET", `/${id}/items/${encodeURIComponent(odd)}`), 404);
  }
});

test("a call that has no other id keeps its result; a kept item keeps its id", async () => {
  begin();
  const { id } = await call("POST", "", conversation, {
    items: [
      user("go"),
      { type: "local_shell_call", id: "sh_1", action: { type: "exec", command: ["ls"] }, status: "completed" },
    ],
  });
  const told = await whole(gateway, {
    conversation: id,
    input: [{ type: "local_shell_call_output", id: "sh_1", output: "a.txt" }],
  });
  const { data } = await call("GET", `/${id}/items?order=asc`, itemList);
  expect(data.slice(1, 3)).toMatchObject([{ call_id: "sh_1" }, { call_id: "sh_1" }]);
  const own = told.output[0]!.id;
  const again = await whole(gateway, { input: [{ type: "item_reference", id: own }, user("more")] });
  const list = await answered(await fetch(`${gateway.url}/v1/responses/${again.id}/input_items?order=asc`));
  expect(list["first_id"]).toBe(own);
});

test("what is wrong is told with its place", async () => {
  begin();
  const { id } = await call("POST", "", conversation, {});
  const many = Array.from({ length: 21 }, (_, n) => user(`${n}`));
  for (const [path, body, param] of [
    ["", { items: many }, "items"],
    ["", { metadata: { a: 1 } }, "metadata.a"],
    ["", { metadata: Object.fromEntries(Array.from({ length: 17 }, (_, n) => [`k${n}`, "v"])) }, "metadata"],
    [`/${id}`, {}, "metadata"],
    [`/${id}/items`, {}, "items"],
    [`/${id}/items`, { items: many }, "items"],
    [`/${id}/items`, { items: [user("x"), { content: "y" }] }, "items[1].type"],
    [`/${id}/items`, { items: [{ role: "king", content: "y" }] }, "items[0].role"],
    [`/${id}/items`, { items: [{ role: "user" }] }, "items[0].content"],
    [
      "",
      { items: [user("x"), { role: "user", content: [{ type: "input_image", image_url: "x" }] }] },
      "items[1].content[0].type",
    ],
    [`/${id}/items`, { items: [{ role: "user", content: [{ type: "input_file" }] }] }, "items[0].content[0].type"],
    [`/${id}/items`, { items: [{ type: "function_call", call_id: "c", arguments: "{}" }] }, "items[0].name"],
    [`/${id}/items`, { items: [{ type: "function_call_output", call_id: "c" }] }, "items[0].output"],
    [`/${id}/items`, { items: [{ type: "item_reference", id: "msg_1" }] }, "items[0]"],
  ] as const)
    expect((await answered(await raw("POST", path, body), 400))["error"]).toMatchObject({ param });
  expect((await call("GET", `/${id}/items`, itemList)).data).toEqual([]);
});

test("responses go on from a conversation and add to it; other tenants have none", async () => {
  begin();
  const { id } = await call("POST", "", conversation, { items: [user("My name is Ann")] });
  const told = await whole(gateway, { conversation: id, input: "What is my name?" });
  expect(told["conversation"]).toEqual({ id });
  const prompt = decodeAll([...gateway.engine.calls.at(-1)!.request.tokenIds], false);
  expect(prompt.indexOf("My name is Ann")).toBeLessThan(prompt.indexOf("What is my name?"));
  const all = await call("GET", `/${id}/items?order=asc`, itemList);
  expect(texts(all)).toEqual(["My name is Ann", "What is my name?", "Hello"]);
  expect(all.data[2]).toEqual(told.output[0] as unknown as Body["data"][number]);
  await gateway.history!.createConversation({ tenant: "other", id: "conv_x", createdAt: 1, metadata: "{}" }, []);
  await answered(await raw("GET", "/conv_x"), 404);
  await answered(await post(gateway, { conversation: "conv_x" }), 404);
});

test("of a long conversation the newest items are kept, and no result without its call", async () => {
  begin();
  const { id } = await call("POST", "", conversation, {});
  const history = gateway.history!;
  const messages = Array.from({ length: 5000 }, (_, n) => ({
    id: `msg_${n}`,
    json: JSON.stringify({ id: `msg_${n}`, type: "message", role: "user", content: `n${n}.` }),
  }));
  const item_ = (type: string, more: object) => ({
    id: type,
    json: JSON.stringify({ id: type, type, call_id: "call_1", ...more }),
  });
  // the 5000 newest begin with the result
  const made = [
    item_("function_call", { name: "f", arguments: "{}" }),
    item_("function_call_output", { output: "ORPHAN" }),
    ...messages.slice(0, 4999),
  ];
  await history.addItems("default", id, made, Date.now());
  await whole(gateway, { conversation: id, input: "last", truncation: "auto" });
  const prompt = decodeAll([...gateway.engine.calls.at(-1)!.request.tokenIds], false);
  expect(prompt).toContain("n4998.");
  expect(prompt).toContain("last");
  expect(prompt).not.toContain("ORPHAN");
  expect(prompt).not.toContain("n0.");
}, 20_000);

test("a path with a broken escape is none that there is", async () => {
  begin();
  for (const [method, path] of [
    ["GET", "/%ff"],
    ["DELETE", "/%ff"],
    ["POST", "/%ff"],
    ["GET", "/%ff/items"],
    ["GET", "/conv_1/items/%E0%A4%A"],
  ] as const)
    expect(
      (await answered(await raw(method, path, method === "POST" ? { metadata: {} } : undefined), 404))["error"],
    ).toEqual({
      message: "The path has a broken escape (%)",
      type: "invalid_request_error",
      param: null,
      code: "not_found",
    });
});

test("a gateway that keeps nothing says so", async () => {
  gateway = gatewayOver(null);
  await answered(await raw("POST", "", {}), 400);
  await answered(await raw("GET", "/conv_1"), 404);
  await answered(await raw("GET", "/conv_1/items"), 404);
});
