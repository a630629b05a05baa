import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { BUILD_MS } from "./support/binary.ts";
import { chat, startEngine, startGateway, type TestEngine, type TestGateway, user } from "./support/processes.ts";
import { openAiClient } from "./support/responses.ts";

const SCRIPT = `
- contains: say emoji
  text: "naïve 👩‍👩‍👧 日本 done"
  tokens_per_message: [1, 3, 2, 1]
- contains: count for me
  text: "one two three STOP four five"
- contains: with a newline
  text: "first line\\nsecond line"
- contains: say nothing
  text: ""
`;

for (const threads of [1, 2]) {
  for (const transport of threads === 1 ? ["framing", "grpc-js"] : ["framing"]) {
    describe(`chat with the openai client, ${threads} thread(s), ${transport}`, () => {
      let engine: TestEngine;
      let gateway: TestGateway;
      let client: OpenAI;
      let model: string;

      beforeAll(async () => {
        engine = await startEngine(SCRIPT);
        gateway = await startGateway(
          [engine],
          ["--threads", String(threads), "--engine-transport", transport, "--model-alias", "pet=collie-demo"],
        );
        client = openAiClient(gateway);
        model = gateway.model;
      }, BUILD_MS);
      afterAll(async () => {
        await gateway?.stop();
        await engine?.stop();
      });

      test("an answer tells what the engine saw", async () => {
        const answer = await client.chat.completions.create({ model, messages: user("Hello") });
        expect(answer.object).toBe("chat.completion");
        expect(answer.model).toBe(model);
        expect(answer.choices).toHaveLength(1);
        const [choice] = answer.choices;
        expect(choice!.message.role).toBe("assistant");
        expect(choice!.message.content).toContain(`${answer.usage!.prompt_tokens} tokens`);
        expect(choice!.finish_reason).toBe("stop");
        expect(answer.usage!.total_tokens).toBe(answer.usage!.prompt_tokens + answer.usage!.completion_tokens);
      });

      test("streamed and collected answers are the same, through the client's strict stream helper", async () => {
        const messages = user("say emoji please");
        const whole = await client.chat.completions.create({ model, messages });
        const stream = client.chat.completions.stream({ model, messages, stream_options: { include_usage: true } });
        let text = "";
        stream.on("content", (delta) => {
          text += delta;
        });
        const final = await stream.finalChatCompletion();
        expect(text).toBe("naïve 👩‍👩‍👧 日本 done");
        expect(final.choices[0]!.message.content).toBe(text);
        expect(whole.choices[0]!.message.content).toBe(text);
        expect(final.choices[0]!.finish_reason).toBe(whole.choices[0]!.finish_reason);
        expect(final.usage!.completion_tokens).toBe(whole.usage!.completion_tokens);
      });

      test("the prompt is the chat template's, token for token", async () => {
        const answer = (await (
          await chat(gateway, { model, messages: user("Hello"), max_tokens: 1, return_token_ids: true })
        ).json()) as { prompt_token_ids: number[] };
        // <|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n
        expect(answer.prompt_token_ids).toEqual([151644, 872, 198, 9707, 151645, 198, 151644, 77091, 198]);
      });

      test("stop strings end the answer, hide themselves, and free the engine", async () => {
        const answer = await client.chat.completions.create({ model, messages: user("count for me"), stop: ["STOP"] });
        expect(answer.choices[0]!.message.content).toBe("one two three ");
        expect(answer.choices[0]!.finish_reason).toBe("stop");
        expect((answer.choices[0] as unknown as { stop_reason: string }).stop_reason).toBe("STOP");
        const chunks: string[] = [];
        const stream = await client.chat.completions.create({
          model,
          messages: user("count for me"),
          stop: "three STOP",
          stream: true,
        });
        for await (const chunk of stream) chunks.push(chunk.choices[0]?.delta.content ?? "");
        expect(chunks.join("")).toBe("one two ");
      });

      test("several choices, each with its own role, text and finish", async () => {
        const answer = await client.chat.completions.create({
          model,
          messages: user("say emoji"),
          n: 3,
          temperature: 1,
        });
        expect(answer.choices.map((choice) => choice.index)).toEqual([0, 1, 2]);
        for (const choice of answer.choices) expect(choice.message.content).toBe("naïve 👩‍👩‍👧 日本 done");
        const stream = client.chat.completions.stream({ model, messages: user("say emoji"), n: 2, temperature: 1 });
        const final = await stream.finalChatCompletion();
        expect(final.choices.map((choice) => choice.message.content)).toEqual(Array(2).fill("naïve 👩‍👩‍👧 日本 done"));
      });

      test("logprobs carry exact bytes, stream and collected alike", async () => {
        const request = { model, messages: user("say emoji"), logprobs: true, top_logprobs: 2 };
        const whole = await client.chat.completions.create(request);
        const entries = whole.choices[0]!.logprobs!.content!;
        const bytes = entries.flatMap((entry) => (entry.token.startsWith("<|") ? [] : (entry.bytes ?? [])));
        expect(Buffer.from(bytes).toString("utf8")).toBe("naïve 👩‍👩‍👧 日本 done");
        for (const entry of entries) expect(entry.top_logprobs).toHaveLength(2);
        const streamed: unknown[] = [];
        for await (const chunk of await client.chat.completions.create({ ...request, stream: true })) {
          streamed.push(...(chunk.choices[0]?.logprobs?.content ?? []));
        }
        expect(streamed).toEqual(entries);
      });

      test("max_tokens ends with length", async () => {
        const answer = await client.chat.completions.create({ model, messages: user("Hello"), max_tokens: 4 });
        expect(answer.choices[0]!.finish_reason).toBe("length");
        expect(answer.usage!.completion_tokens).toBe(4);
      });

      test("usage comes in a last chunk of its own, and only when asked for", async () => {
        const frames = async (extra: object) => {
          const text = await (await chat(gateway, { model, messages: user("Hello"), stream: true, ...extra })).text();
          expect(text.endsWith("data: [DONE]\n\n")).toBe(true);
          return text
            .split("\n\n")
            .flatMap((f) => (f.startsWith("data: {") ? [JSON.parse(f.slice(6)) as Record<string, unknown>] : []));
        };
        const plain = await frames({});
        expect(plain.every((f) => !("usage" in f))).toBe(true);
        const asked = await frames({ stream_options: { include_usage: true } });
        expect(asked.slice(0, -1).every((f) => f["usage"] === null)).toBe(true);
        expect(asked.at(-1)).toMatchObject({ choices: [], usage: { prompt_tokens: 9 } });
      });

      test("continue_final_message goes on inside the last message", async () => {
        const body = {
          model,
          messages: [...user("Hi"), { role: "assistant", content: "Sure, the answer" }],
          continue_final_message: true,
          add_generation_prompt: false,
          return_token_ids: true,
          max_tokens: 1,
        };
        const answer = (await (await chat(gateway, body)).json()) as { prompt_token_ids: number[] };
        const stream = (await (await chat(gateway, { ...body, continue_final_message: false })).json()) as {
          prompt_token_ids: number[];
        };
        // The closed turn ends with <|im_end|>\n; the open one with the text itself.
        expect(stream.prompt_token_ids.slice(-2)).toEqual([151645, 198]);
        expect(answer.prompt_token_ids.at(-1)).not.toBe(198);
      });

      test("sampling fields and constraints reach the engine", async () => {
        await client.chat.completions.create({
          model,
          messages: user("fields"),
          max_tokens: 2,
          temperature: 0.25,
          top_p: 0.5,
          seed: 7,
          frequency_penalty: 0.5,
          presence_penalty: -0.5,
          logit_bias: { "15": 1.5 },
          response_format: { type: "json_schema", json_schema: { name: "x", schema: { type: "object" } } },
          ...{ top_k: 5, min_p: 0.125, repetition_penalty: 1.5, min_tokens: 1, stop_token_ids: [42], ignore_eos: true },
        });
        const last = (await engine.requests()).at(-1)!;
        expect(last.sampling).toMatchObject({
          temperature: 0.25,
          topP: 0.5,
          topK: 5,
          minP: 0.125,
          seed: 7,
          maxTokens: 2,
          minTokens: 1,
          ignoreEos: true,
        });
        expect(JSON.stringify(last)).toContain('{\\"type\\":\\"object\\"}');
      });

      test("models are listed by name and alias, and answers echo the alias", async () => {
        const ids = (await client.models.list()).data.map((entry) => entry.id);
        expect(ids).toEqual([model, "pet"]);
        expect((await client.models.retrieve("pet")).id).toBe("pet");
        const answer = await client.chat.completions.create({ model: "pet", messages: user("Hello"), max_tokens: 1 });
        expect(answer.model).toBe("pet");
      });

      test("mistakes are errors of the client's own classes, with the field named", async () => {
        const failing = async (body: object) => {
          try {
            await client.chat.completions.create({
              model,
              messages: user("x"),
              ...body,
            } as OpenAI.ChatCompletionCreateParamsNonStreaming);
          } catch (error) {
            return error as InstanceType<typeof OpenAI.APIError>;
          }
          throw new Error("no error");
        };
        expect(await failing({ model: "nobody" })).toMatchObject({
          status: 404,
          code: "model_not_found",
          param: "model",
        });
        expect(await failing({ temperature: 9 })).toMatchObject({ status: 400, param: "temperature" });
        expect(await failing({ messages: [] })).toMatchObject({ status: 400, param: "messages" });
        expect(await failing({ max_tokens: 1_000_000 })).toMatchObject({
          status: 400,
          code: "context_length_exceeded",
          param: "messages",
        });
        expect(await failing({ messages: user("word ".repeat(50_000)) })).toMatchObject({
          status: 400,
          code: "context_length_exceeded",
        });
        expect((await failing({ model: "nobody" })) instanceof OpenAI.NotFoundError).toBe(true);
      });
    });
  }
}
