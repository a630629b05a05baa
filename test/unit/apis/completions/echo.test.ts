/** `POST /v1/completions` over HTTP, with a real tokenizer and an engine in memory: echo and logprobs. */
import { afterAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { loadTokenizer, openTokenizer } from "../../../../src/tokenizer/load.ts";
import { decodeAll, END_OF_TEXT, encode } from "../../generation/demo-tokenizer.ts";
import { ScriptedEngine } from "../../generation/scripted-engine.ts";
import { modelEntry } from "../../server/gateway.ts";
import {
  completedBothWays,
  PATH,
  promptsOf,
  refused,
  rows,
  speaking,
  started,
  stopAll,
  TEXT,
  textOf,
} from "./gateway.ts";

/** Answers every choice with a text that tells its prompt and its number. */
const gateway = started(speaking((call, choice) => `${TEXT} ${call.request.tokenIds.length}.${choice}`));
afterAll(stopAll);
const bothWays = (body: object, from = gateway) => completedBothWays(body, from);
const prompts = (body: object, from = gateway) => promptsOf(body, from);

describe("echo", () => {
  test("the text begins with the prompt, of each choice", async () => {
    const { choices } = await bothWays({ prompt: ["Once 日本", "upon"], echo: true, n: 2, max_tokens: 3 });
    expect(choices.map(({ text }) => text.startsWith("Once 日本"))).toEqual([true, true, false, false]);
    expect(choices.every(({ text }) => text.includes("naïve"))).toBe(true);
  });

  test("ids, and what was cut, are shown as their text", async () => {
    expect(textOf(await bothWays({ prompt: encode("Once upon"), echo: true }))).toStartWith("Once upon");
    const ids = encode("Once upon a time");
    expect(textOf(await bothWays({ prompt: "Once upon a time", echo: true, truncate_prompt_tokens: 2 }))).toStartWith(
      `${decodeAll(ids.slice(-2))}naïve`,
    );
  });

  test("with max_tokens 0 nothing but the prompt is told", async () => {
    const { choices, usage } = await bothWays({ prompt: ["Once upon", "a"], echo: true, max_tokens: 0, logprobs: 1 });
    expect(choices.map(({ text, finish_reason: end }) => [text, end])).toEqual([
      ["Once upon", "length"],
      ["a", "length"],
    ]);
    expect(choices[0]!.logprobs!.tokens).toEqual(["Once", " upon"]);
    expect(choices[0]!.logprobs!.token_logprobs[0]).toBeNull();
    expect(choices[0]!.logprobs!.token_logprobs[1]).toBeNumber();
    expect(usage.completion_tokens).toBe(0);
    expect(gateway.engine.calls.at(-1)!.request.sampling).toMatchObject({ maxTokens: 1, promptLogprobs: 1 });
  });

  test("an engine that keeps the prompt's logprobs back is at fault", async () => {
    const silent = started(
      new ScriptedEngine((call) => {
        call.chunk([1]).finish({ completionTokens: 1 }).end();
      }),
    );
    const body = { prompt: "a", echo: true, logprobs: 0 };
    expect((await refused(silent, PATH, body)).slice(0, 2)).toEqual([502, "engine_protocol_error"]);
    expect((await refused(silent, PATH, { ...body, stream: true })).slice(0, 2)).toEqual([
      502,
      "engine_protocol_error",
    ]);
  });
});

describe("logprobs", () => {
  test("tokens, values, alternatives and offsets, whole as streamed", async () => {
    for (const size of [1, 3, 100]) {
      const piecewise = started(
        speaking(
          () => "日本 a",
          () => size,
        ),
      );
      const { choices } = await bothWays({ prompt: "x👍", echo: true, logprobs: 2 }, piecewise);
      const { tokens, text_offset: offsets, top_logprobs: top, token_logprobs: values } = choices[0]!.logprobs!;
      const ids = [...encode("x👍"), ...encode("日本 a"), END_OF_TEXT];
      expect(tokens).toHaveLength(ids.length);
      const text = Array.from(choices[0]!.text);
      expect(text.join("")).toBe("x👍日本 a");
      tokens.forEach((token, i) => {
        if (token.startsWith("bytes:") || token === "<|endoftext|>") return;
        expect(text.slice(offsets[i], offsets[i]! + Array.from(token).length).join("")).toBe(token);
      });
      expect(tokens.at(-1)).toBe("<|endoftext|>");
      expect(offsets.at(-1)).toBe(text.length);
      expect([values[0], top[0]]).toEqual([null, null]);
      for (const [i, token] of tokens.entries()) if (i > 0) expect(top[i]![token]).toBe(values[i]!);
    }
  });

  test("0 shows each token's own", async () => {
    const { choices } = await bothWays({ prompt: "x", logprobs: 0, max_tokens: 2 });
    const { tokens, token_logprobs: values, top_logprobs: top } = choices[0]!.logprobs!;
    expect(top).toEqual(tokens.map((token, i) => ({ [token]: values[i]! })));
  });

  test("return_tokens_as_token_ids names tokens by id", async () => {
    const { choices } = await bothWays({ prompt: "x", logprobs: 1, return_tokens_as_token_ids: true, max_tokens: 2 });
    expect(choices[0]!.logprobs!.tokens).toEqual(
      encode(TEXT)
        .slice(0, 2)
        .map((id) => `token_id:${id}`),
    );
  });
});

describe("a model whose tokenizer begins texts with BOS and a space", async () => {
  const config = { tokenizer_class: "LlamaTokenizer", add_bos_token: true, bos_token: "<s>" };
  const model = readFileSync(join(import.meta.dir, "../../../golden/completions/fim.model"));
  const files = [
    ["tokenizer.model", model],
    ["tokenizer_config.json", Buffer.from(JSON.stringify(config))],
  ] as const;
  const handle = await loadTokenizer(new Map(files));
  const tokenizer = openTokenizer(handle);
  const [bos, eos] = [tokenizer.tokenId("<s>")!, tokenizer.tokenId("</s>")!];
  const idsOf = (text: string) => Array.from(tokenizer.encode(text));
  const whole = idsOf("the quick fox");
  const rest = whole.slice(idsOf("the").length);
  const llama = started(
    new ScriptedEngine((call) => {
      const ids = [...rest, eos];
      const { promptLogprobs: prompt, logprobs } = call.request.sampling;
      call.chunk(ids, {
        ...(logprobs !== undefined && { logprobs: rows(ids, logprobs) }),
        ...(prompt !== undefined && { promptLogprobs: rows(Array.from(call.request.tokenIds), prompt, true) }),
      });
      call.finish({ completionTokens: ids.length }).end();
    }),
    [modelEntry({ tokenizer: handle, template: undefined, eosTokenIds: [eos] })],
  );

  test("texts get it unless they ask for none; ids are taken as they are", async () => {
    expect(whole.slice(0, idsOf("the").length)).toEqual(idsOf("the"));
    expect(await prompts({ prompt: "the" }, llama)).toEqual([[bos, ...idsOf("the")]]);
    expect(await prompts({ prompt: "the", add_special_tokens: false }, llama)).toEqual([idsOf("the")]);
    expect(await prompts({ prompt: idsOf("the") }, llama)).toEqual([idsOf("the")]);
    expect(await prompts({ prompt: "" }, llama)).toEqual([[bos]]);
  });

  test("an answer goes on in the prompt's text: its space stays", async () => {
    expect(textOf(await bothWays({ prompt: "the" }, llama))).toBe(" quick fox");
    expect(textOf(await bothWays({ prompt: "the", echo: true }, llama))).toBe("the quick fox");
    // behind nothing but BOS it begins a text
    expect(textOf(await bothWays({ prompt: "" }, llama))).toBe("quick fox");
  });

  test("BOS has a place among the echoed tokens, and none in the text", async () => {
    const { choices } = await bothWays({ prompt: "the", echo: true, logprobs: 1 }, llama);
    const { tokens, text_offset: offsets, token_logprobs: values } = choices[0]!.logprobs!;
    expect(tokens[0]).toBe("<s>");
    expect([offsets[0], offsets[1], values[0]]).toEqual([0, 0, null]);
    expect(offsets.at(-1)).toBe("the quick fox".length);
    expect(offsets[1 + idsOf("the").length]).toBe("the".length);
  });
});
