import { describe, expect, test } from "bun:test";
import { type TSchema, Type as t } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { InvalidRequestError } from "../../../src/errors.ts";
import { invalidBody } from "../../../src/server/validation.ts";
import { type Gateway, MODEL, startGateway } from "./gateway.ts";

const maybe = <S extends TSchema>(schema: S) => t.Optional(t.Union([schema, t.Null()]));
const schema = t.Object({
  name: t.String({ minLength: 1 }),
  size: maybe(t.Integer({ minimum: 1 })),
  list: maybe(t.Array(t.Object({ kind: t.String(), deep: maybe(t.Array(t.Number())) }))),
  either: maybe(t.Union([t.String(), t.Array(t.String({ minLength: 1 }))])),
  map: maybe(t.Record(t.String(), t.Number())),
  form: maybe(t.Union([t.Literal("float"), t.Literal("base64")])),
});

function problem(body: unknown): { message: string; param: string | undefined } {
  expect(Value.Check(schema, body)).toBe(false);
  const error = invalidBody(Value.Errors(schema, body) as never);
  expect(error).toBeInstanceOf(InvalidRequestError);
  return { message: error.message, param: error.param };
}

describe("the first problem names its field", () => {
  test.each<[unknown, string, string]>([
    [{}, "name", "Missing required parameter: 'name'"],
    [{ name: 5 }, "name", "Invalid 'name': expected string, got 5"],
    [{ name: "" }, "name", "Invalid 'name': expected string length greater or equal to 1, got a string"],
    [{ name: "n", size: 0 }, "size", "Invalid 'size': expected integer to be greater or equal to 1, got 0"],
    [{ name: "n", size: 1.5 }, "size", "Invalid 'size': expected integer, got 1.5"],
    [{ name: "n", size: "3" }, "size", "Invalid 'size': expected integer, got a string"],
    [{ name: "n", size: { a: 1 } }, "size", "Invalid 'size': expected integer, got an object"],
    [{ name: "n", list: [{}] }, "list[0].kind", "Missing required parameter: 'list[0].kind'"],
    [
      { name: "n", list: [{ kind: "k" }, { kind: null }] },
      "list[1].kind",
      "Invalid 'list[1].kind': expected string, got null",
    ],
    [
      { name: "n", list: [{ kind: "k", deep: [1, 2, "x"] }] },
      "list[0].deep[2]",
      "Invalid 'list[0].deep[2]': expected number, got a string",
    ],
    [
      { name: "n", either: ["a", ""] },
      "either[1]",
      "Invalid 'either[1]': expected string length greater or equal to 1, got a string",
    ],
    [{ name: "n", form: "x" }, "form", "Invalid 'form': expected one of 'float', 'base64', got a string"],
    [{ name: "n", map: { "a/b~c": "x" } }, "map.a/b~c", "Invalid 'map.a/b~c': expected number, got a string"],
  ])("%j", (body, param, message) => {
    expect(problem(body)).toEqual({ param, message });
  });
});

test.each<[unknown]>([["text"], [5], [null], [[1, 2]]])("a body that is no object (%j) says so", (body) => {
  expect(problem(body).message).toStartWith("The body must be a JSON object, not ");
});

test("no problems at all still give an error", () => {
  expect(invalidBody([]).message).toBe("The body is not valid");
});

test("a value is described, never repeated: it may be long or private", () => {
  const { message } = problem({ name: "n", size: "p4ssword".repeat(10_000) });
  expect(message).not.toContain("p4ssword");
  expect(message.length).toBeLessThan(200);
});

describe("the way through Elysia's own check gives the same", () => {
  let gateway: Gateway;
  test.each<[Record<string, unknown>, string]>([
    [{ temperature: "hot" }, "temperature"],
    [{ messages: [{ role: "user", content: [{ type: 5 }] }] }, "messages[0].content[0].type"],
    [{ messages: [{ role: "user", content: "a" }, { content: "b" }] }, "messages[1].role"],
    [{ stop: ["a", 5] }, "stop[1]"],
    [{ stream_options: { include_usage: "yes" } }, "stream_options.include_usage"],
    [{ logit_bias: { "5": "x" } }, "logit_bias[5]"],
    [{ n: 129 }, "n"],
  ])("%j", async (fields, param) => {
    gateway ??= startGateway();
    const response = await gateway.post({ model: MODEL, messages: [{ role: "user", content: "Hi" }], ...fields });
    expect(response.status).toBe(400);
    const { error } = (await response.json()) as { error: Record<string, unknown> };
    expect(error).toMatchObject({ type: "invalid_request_error", code: "invalid_request", param });
    expect(error["message"]).toContain(`'${param}'`);
  });

  test.each([
    "chat/completions",
    "completions",
    "messages",
    "embeddings",
    "rerank",
    "classify",
    "responses",
    "interactions",
  ])("an object with a member toString where a text is due: %s", async (path) => {
    gateway ??= startGateway();
    for (const value of [{ toString: 1 }, { toString: {}, valueOf: 2 }]) {
      const response = await fetch(`${gateway.url}/v1/${path}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ model: value, messages: [], input: "a", max_tokens: 1, query: "a", documents: ["b"] }),
      });
      expect(response.status).toBe(400);
      expect(await response.text()).toContain("Invalid 'model': expected string, got an object");
    }
  });

  test("nothing was asked of the engine", async () => {
    expect(gateway.engine.calls).toEqual([]);
    await gateway.stop();
  });
});
