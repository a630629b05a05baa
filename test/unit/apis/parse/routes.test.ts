/** The parsers' routes over HTTP. Shapes and plain results are those of SMG 1.13.0 for the same bodies. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Gateway, startGateway } from "../../server/gateway.ts";

let gateway: Gateway;
let locked: Gateway;
beforeAll(() => {
  gateway = startGateway();
  locked = startGateway(["--api-key", "s3cret"]);
});
afterAll(() => Promise.all([gateway.stop(), locked.stop()]));

const send = (to: Gateway, path: string, body: unknown, headers: Record<string, string> = {}) =>
  fetch(to.url + path, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
async function post(path: string, body: unknown) {
  const response = await send(gateway, path, body);
  expect(response.headers.get("x-request-id")).toBeTruthy();
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

const tools = [{ type: "function", function: { name: "f", parameters: { type: "object" } } }];
const TEXT = 'Hi <tool_call>\n{"name": "f", "arguments": {"a": 1.0}}\n</tool_call>';

describe("/parse/function_call", () => {
  test("the text without the calls, and the calls; arguments as the model wrote them", async () => {
    expect(await post("/parse/function_call", { text: TEXT, tool_call_parser: "qwen", tools })).toEqual({
      status: 200,
      body: {
        remaining_text: "Hi ",
        tool_calls: [{ function: { name: "f", arguments: '{"a": 1.0}' } }],
        success: true,
      },
    });
  });

  test("tools may be missing; without calls all is text", async () => {
    expect((await post("/parse/function_call", { text: TEXT, tool_call_parser: "hermes" })).body).toMatchObject({
      tool_calls: [{ function: { name: "f" } }],
    });
    expect((await post("/parse/function_call", { text: "Hi", tool_call_parser: "qwen", tools: [] })).body).toEqual({
      remaining_text: "Hi",
      tool_calls: [],
      success: true,
    });
    expect((await post("/parse/function_call", { text: "", tool_call_parser: "passthrough" })).body).toEqual({
      remaining_text: "",
      tool_calls: [],
      success: true,
    });
  });

  test("a call that is cut off is no success", async () => {
    const text = TEXT.slice(0, TEXT.indexOf("1.0"));
    expect((await post("/parse/function_call", { text, tool_call_parser: "qwen", tools })).body).toEqual({
      remaining_text: "Hi ",
      tool_calls: [{ function: { name: "f", arguments: '{"a": ' } }],
      success: false,
    });
  });

  test("types of arguments come from the schema, where the format has none", async () => {
    const text = "<tool_call>\n<function=f>\n<parameter=n>\n5\n</parameter>\n</function>\n</tool_call>";
    const of = async (type: string) => {
      const parameters = { type: "object", properties: { n: { type } } };
      const typed = [{ type: "function", function: { name: "f", parameters } }];
      const { body } = await post("/parse/function_call", { text, tool_call_parser: "qwen3_coder", tools: typed });
      const [call] = body["tool_calls"] as { function: { arguments: string } }[];
      return JSON.parse(call!.function.arguments) as unknown;
    };
    expect([await of("integer"), await of("string")]).toEqual([{ n: 5 }, { n: "5" }]);
  });

  test("reasoning in the format of the calls is not lost", async () => {
    const text =
      '<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"a":1}<|call|>';
    expect((await post("/parse/function_call", { text, tool_call_parser: "harmony", tools })).body).toEqual({
      remaining_text: "",
      reasoning_text: "Hm",
      tool_calls: [{ function: { name: "f", arguments: '{"a":1}' } }],
      success: true,
    });
  });

  test("a long text is the same as a short one", async () => {
    const long = "word ".repeat(100_000);
    const { body } = await post("/parse/function_call", { text: long + TEXT, tool_call_parser: "qwen", tools });
    expect(body).toEqual({
      remaining_text: `${long}Hi `,
      tool_calls: [{ function: { name: "f", arguments: '{"a": 1.0}' } }],
      success: true,
    });
  });
});

describe("/parse/reasoning", () => {
  test.each([
    ["qwen3", "<think>a</think>b", "a", "b"],
    ["deepseek_r1", "a</think>b", "a", "b"],
    ["qwen3", "b", "", "b"],
    ["qwen3", `<think>a</think>${TEXT}`, "a", TEXT],
    ["none", "<think>a</think>b", "", "<think>a</think>b"],
  ])("%s: %s", async (reasoning_parser, text, reasoning_text, normal_text) => {
    expect(await post("/parse/reasoning", { text, reasoning_parser })).toEqual({
      status: 200,
      body: { normal_text, reasoning_text, success: true },
    });
  });
});

test("SGLang's paths and shapes", async () => {
  expect((await post("/parse_function_call", { text: TEXT, tool_call_parser: "qwen25", tools })).body).toEqual({
    normal_text: "Hi ",
    calls: [{ tool_index: 0, name: "f", parameters: '{"a": 1.0}' }],
  });
  expect((await post("/separate_reasoning", { text: "a</think>b", reasoning_parser: "deepseek-r1" })).body).toEqual({
    reasoning_text: "a",
    text: "b",
  });
});

describe("what is wrong", () => {
  test.each([
    ["/parse/function_call", { text: "a", tool_call_parser: "nope" }, "There is no tool call parser 'nope'"],
    ["/parse/reasoning", { text: "a", reasoning_parser: "nope" }, "There is no reasoning parser 'nope'"],
    ["/parse/function_call", { text: "a" }, "Missing required parameter: 'tool_call_parser'"],
    ["/parse/function_call", { tool_call_parser: "qwen" }, "Missing required parameter: 'text'"],
    ["/parse/function_call", { text: "a", tool_call_parser: "qwen", tools: [{ type: "x" }] }, "tools[0].type"],
    ["/parse/reasoning", { text: 1, reasoning_parser: "qwen3" }, "Invalid 'text'"],
    ["/parse/reasoning", [], "The body must be a JSON object"],
  ])("%s %j", async (path, body, message) => {
    const found = await post(path, body);
    expect(found.status).toBe(400);
    expect((found.body["error"] as { message: string }).message).toStartWith(message);
  });

  test("every path is under the key, and no request stays open", async () => {
    const paths = ["/parse/function_call", "/parse/reasoning", "/parse_function_call", "/separate_reasoning"];
    const body = { text: "a", reasoning_parser: "qwen3", tool_call_parser: "qwen" };
    for (const path of paths) {
      expect((await send(locked, path, body)).status).toBe(401);
      expect((await send(locked, path, body, { authorization: "Bearer s3cret" })).status).toBe(200);
    }
    expect([gateway.scopes.size, locked.scopes.size]).toEqual([0, 0]);
  });
});
