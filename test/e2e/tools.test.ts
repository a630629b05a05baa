/** The helpers of the openai package, with loops of tool calls, against the program and an engine that follows a script. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type OpenAI from "openai";
import { BUILD_MS } from "./support/binary.ts";
import { FAMILIES, type Family } from "./support/families.ts";
import { startEngine, startGateway, type TestEngine, type TestGateway, user } from "./support/processes.ts";
import { openAiClient } from "./support/responses.ts";

const CITIES = ["Oslo", "Łódź"];
const ANSWER = "Both have 4 degrees. 👩‍👩‍👧";

const CODE = 'print("hi")\n';
const CODE_CALL = `<tool_call>${JSON.stringify({ name: "run_code", arguments: { input: CODE } })}</tool_call>`;

const scriptOf = ({ thoughts, calls, results }: Family) =>
  JSON.stringify([
    { contains: results, text: ANSWER, tokens_per_message: [1, 3, 2] },
    { contains: "cut the call", text: thoughts + calls(CITIES).slice(0, calls(CITIES).indexOf("Oslo") + 2) },
    { contains: "both towns", text: thoughts + calls(CITIES), tokens_per_message: [1, 2, 5, 1] },
    { contains: "say hi in Python", text: CODE_CALL, tokens_per_message: [1, 4] },
    ...["refused once", "refused either"].map((contains) => ({
      contains,
      fault: { kind: "status", code: "INVALID_ARGUMENT", message: "Invalid structural tag specification." },
      times: 1,
    })),
    { contains: "say JSON", text: '{"city": "Oslo"}' },
  ]);

const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };

/** What the answer of a stream and a whole one have in common. */
function told({ choices: [choice], usage }: OpenAI.ChatCompletion): unknown {
  const { content, role, refusal, tool_calls } = choice!.message;
  const calls = tool_calls?.map((call) => ({ ...call, id: call.id.length }));
  const { completion_tokens, completion_tokens_details, prompt_tokens } = usage!;
  const used = { completion_tokens, completion_tokens_details, prompt_tokens };
  return JSON.parse(JSON.stringify({ content, role, refusal, calls, finish: choice!.finish_reason, used }));
}

for (const family of FAMILIES) {
  describe(`${family.name}, with the openai client`, () => {
    const folder = mkdtempSync(join(tmpdir(), "collie-tools-"));
    let engine: TestEngine;
    let gateway: TestGateway;
    let client: OpenAI;
    let model: string;

    beforeAll(async () => {
      const args = [...family.args];
      if (family.template !== undefined) {
        writeFileSync(join(folder, "template.jinja"), family.template);
        args.push("--chat-template", join(folder, "template.jinja"));
      }
      engine = await startEngine(scriptOf(family), ["--speed", "0"]);
      gateway = await startGateway([engine], args);
      client = openAiClient(gateway);
      model = gateway.model;
    }, BUILD_MS);
    afterAll(async () => {
      await gateway?.stop();
      await engine?.stop();
      rmSync(folder, { recursive: true, force: true });
    });

    const weather = (asked: string[]) => ({
      type: "function" as const,
      function: {
        name: "get_weather",
        description: "Tells the weather",
        parameters,
        parse: (text: string) => JSON.parse(text) as { city: string },
        function: ({ city }: { city: string }) => {
          asked.push(city);
          return JSON.stringify({ city, degrees: 4 });
        },
      },
    });
    const declared = () => {
      const { parse: _, function: __, ...rest } = weather([]).function;
      return [{ type: "function" as const, function: rest }];
    };

    test.each([false, true])("runTools goes two rounds (stream %p)", async (stream) => {
      const asked: string[] = [];
      const body = { model, messages: user("weather of both towns"), tools: [weather(asked)] };
      const runner = stream
        ? client.chat.completions.runTools({ ...body, stream: true })
        : client.chat.completions.runTools(body);
      expect(await runner.finalContent()).toBe(ANSWER);
      expect(asked).toEqual(CITIES);
      expect(runner.messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "tool", "assistant"]);
      const [, call] = runner.messages as [unknown, OpenAI.ChatCompletionMessage];
      expect(call.content).toBeNull();
      const usage = await runner.totalUsage();
      if (!stream) expect(usage.completion_tokens).toBeGreaterThan(20);
    });

    test("the stream helper tells of arguments as they come, and ends with the whole answer", async () => {
      const body = { model, messages: user("weather of both towns"), tools: declared() };
      const whole = await client.chat.completions.create(body);
      const stream = client.chat.completions.stream({ ...body, stream_options: { include_usage: true } });
      const joined: string[] = [];
      const done: unknown[] = [];
      let deltas = 0;
      let reasoning = ""; // the helper knows no such field: it keeps the last piece
      stream.on("chunk", ({ choices: [choice] }) => {
        reasoning += (choice?.delta as { reasoning_content?: string } | undefined)?.reasoning_content ?? "";
      });
      stream.on("tool_calls.function.arguments.delta", ({ index, arguments_delta }) => {
        joined[index] = (joined[index] ?? "") + arguments_delta;
        deltas++;
      });
      stream.on("tool_calls.function.arguments.done", ({ name, arguments: args }) => {
        done.push([name, JSON.parse(args)]);
      });
      const final = await stream.finalChatCompletion();
      expect(joined.map((text) => JSON.parse(text))).toEqual(CITIES.map((city) => ({ city })));
      expect(deltas).toBeGreaterThan(4);
      expect(done).toEqual(CITIES.map((city) => ["get_weather", { city }]));
      expect(told(final)).toEqual(told(whole));
      expect(final.choices[0]).toMatchObject({ finish_reason: "tool_calls", message: { content: null } });
      const { reasoning_content } = whole.choices[0]!.message as { reasoning_content?: string };
      expect(reasoning).toBe(reasoning_content ?? "");
      expect(reasoning_content?.trim()).toBe(family.thoughts === "" ? undefined : "Two towns.");
      expect(whole.usage!.completion_tokens_details!.reasoning_tokens! > 0).toBe(family.thoughts !== "");
    });

    test("parse gives arguments of strict tools as objects, and refuses what was cut off", async () => {
      const tools = declared().map((tool) => ({ ...tool, function: { ...tool.function, strict: true } }));
      const parsed = await client.chat.completions.parse({ model, messages: user("weather of both towns"), tools });
      const calls = parsed.choices[0]!.message.tool_calls ?? [];
      expect(calls.map((call) => call.type === "function" && call.function.parsed_arguments)).toEqual(
        CITIES.map((city) => ({ city })),
      );
      const cut = { model, messages: user("cut the call"), tools };
      const limit = (await client.chat.completions.create(cut)).usage!.completion_tokens - 1;
      const answer = await client.chat.completions.create({ ...cut, max_tokens: limit });
      expect(answer.choices[0]).toMatchObject({
        finish_reason: "length",
        message: { tool_calls: [{ function: { name: "get_weather", arguments: '{"city": "Os' } }] },
      });
      const refused = async () => await client.chat.completions.parse({ ...cut, max_tokens: limit });
      await expect(refused()).rejects.toThrow(/length limit/);
    });

    test("JSON that is no call stays content", async () => {
      const answer = await client.chat.completions.create({ model, messages: user("say JSON"), tools: declared() });
      expect(answer.choices[0]).toMatchObject({
        finish_reason: "stop",
        message: { content: '{"city": "Oslo"}' },
      });
      expect(answer.choices[0]!.message.tool_calls).toBeUndefined();
    });

    const named = { type: "function" as const, function: { name: "get_weather" } };
    test.each([
      ["required", "required" as const, "tool_calls"],
      ["named", named, "stop"],
    ])("a call that must be made is made: %s", async (_, tool_choice, finish_reason) => {
      const ask = { model, messages: user("nothing that a script knows"), tools: declared(), tool_choice, n: 2 };
      const body = { ...ask, parallel_tool_calls: false };
      const whole = await client.chat.completions.create(body);
      const stream = await client.chat.completions
        .stream({ ...body, stream_options: { include_usage: true } })
        .finalChatCompletion();
      expect(told(stream)).toEqual(told(whole));
      expect(whole.choices.length).toBe(2);
      for (const choice of [...whole.choices, ...stream.choices]) {
        expect(choice).toMatchObject({ finish_reason, message: { content: null } });
        const calls = choice.message.tool_calls!.map((call) => call.type === "function" && call.function);
        expect(calls).toEqual([{ name: "get_weather", arguments: '{"city":"simulated"}' }]);
      }
      expect((await engine.requests()).at(-1)!.sampling["constraint"]).toMatchObject({ kind: "structural_tag" });
    });

    test("an engine that refuses the form of a call is asked for JSON", async () => {
      const body = { model, messages: user("refused once"), tools: declared(), tool_choice: "required" as const };
      const { choices } = await client.chat.completions.create(body);
      expect(choices[0]).toMatchObject({
        finish_reason: "tool_calls",
        message: { tool_calls: [{ function: { name: "get_weather", arguments: '{"city":"simulated"}' } }] },
      });
      const kinds = (await engine.requests())
        .slice(-2)
        .map((request) => (request.sampling["constraint"] as { kind: string }).kind);
      expect(kinds).toEqual(["structural_tag", "json_schema"]);
    });

    test("beside a format of the answer: a call, or an answer that satisfies it", async () => {
      const schema = { type: "object", properties: { sum: { type: "integer" } }, required: ["sum"] };
      const body = {
        ...{ model, messages: user("nothing known"), tools: declared(), n: 2, temperature: 1 },
        response_format: { type: "json_schema" as const, json_schema: { name: "answer", schema } },
      };
      const whole = await client.chat.completions.create(body);
      const stream = await client.chat.completions.stream(body).finalChatCompletion();
      for (const { choices } of [whole, stream]) {
        expect(choices[0]).toMatchObject({ finish_reason: "stop" });
        expect([JSON.parse(choices[0]!.message.content!), choices[0]!.message.tool_calls ?? []]).toEqual([
          { sum: expect.any(Number) },
          [],
        ]);
        expect(choices[1]).toMatchObject({
          finish_reason: "tool_calls",
          message: { content: null, tool_calls: [{ function: { name: "get_weather" } }] },
        });
      }
      expect((await engine.requests()).at(-1)!.sampling["constraint"]).toMatchObject({ kind: "structural_tag" });
      // one or the other where nothing is left to choose
      const kindOf = async (tool_choice: "none" | "required") => {
        const { choices } = await client.chat.completions.create({ ...body, n: 1, tool_choice });
        const { kind } = (await engine.requests()).at(-1)!.sampling["constraint"] as { kind: string };
        return [kind, choices[0]!.message.tool_calls === undefined];
      };
      expect(await kindOf("none")).toEqual(["json_schema", true]);
      expect(await kindOf("required")).toEqual(["structural_tag", false]);
    });

    test("an engine that refuses to let the model do either is told the format alone", async () => {
      const body = {
        ...{ model, messages: user("refused either"), tools: declared() },
        response_format: { type: "json_object" as const },
      };
      const { choices } = await client.chat.completions.create(body);
      expect(JSON.parse(choices[0]!.message.content!)).toEqual({});
      const kinds = (await engine.requests())
        .slice(-2)
        .map((request) => (request.sampling["constraint"] as { kind: string }).kind);
      expect(kinds).toEqual(["structural_tag", "json_schema"]);
    });

    test("strict tools bind the engine to their schemas, and the answer stays free", async () => {
      const tools = declared().map((tool) => ({ ...tool, function: { ...tool.function, strict: true } }));
      const { choices } = await client.chat.completions.create({ model, messages: user("nothing known"), tools });
      expect(choices[0]!.message.content).toContain("I am a simulated engine");
      const { constraint } = (await engine.requests()).at(-1)!.sampling as {
        constraint: { kind: string; value: string };
      };
      expect(constraint.kind).toBe("structural_tag");
      expect(constraint.value).toContain('"at_least_one":false');
    });

    test.if(family.args.length === 0)("a grammar: told under auto, enforced where the tool is named", async () => {
      const format = { type: "grammar" as const, grammar: { syntax: "regex" as const, definition: "[0-9]{3}-ok" } };
      const tools = [{ type: "custom" as const, custom: { name: "run_code", format } }];
      const free = await client.chat.completions.create({ model, messages: user("say hi in Python"), tools });
      expect(free.choices[0]).toMatchObject({
        finish_reason: "tool_calls",
        message: { content: null, tool_calls: [{ type: "custom", custom: { name: "run_code", input: CODE } }] },
      });
      const tool_choice = { type: "custom" as const, custom: { name: "run_code" } };
      const bound = await client.chat.completions.create({ model, messages: user("unknown"), tools, tool_choice });
      expect(bound.choices[0]).toMatchObject({
        finish_reason: "stop",
        message: { content: null, tool_calls: [{ type: "custom", custom: { name: "run_code", input: "000-ok" } }] },
      });
    });

    test.if(family.args.length === 0)("custom tools and legacy functions, through the stream helper", async () => {
      const messages = user("say hi in Python");
      const custom = { type: "custom" as const, custom: { name: "run_code" } };
      const modern = client.chat.completions.stream({ model, messages, tools: [custom] });
      expect((await modern.finalChatCompletion()).choices[0]).toMatchObject({
        finish_reason: "tool_calls",
        message: { content: null, tool_calls: [{ type: "custom", custom: { name: "run_code", input: CODE } }] },
      });
      const old = client.chat.completions.stream({ model, messages, functions: [{ name: "run_code" }] });
      expect((await old.finalChatCompletion()).choices[0]).toMatchObject({
        finish_reason: "function_call",
        message: { content: null, function_call: { name: "run_code", arguments: JSON.stringify({ input: CODE }) } },
      });
    });
  });
}
