/** Chat Completions with tools over HTTP, asked whole and streamed, with every kind of detail that chunks can carry. */
import { expect } from "bun:test";
import { checkGrammar, fold, type ReadStream, readFrames } from "../apis/chat/chunks.ts";
import { encode, IM_END } from "../generation/demo-tokenizer.ts";
import { type ScriptedCall, ScriptedEngine } from "../generation/scripted-engine.ts";
import { type Gateway, MODEL, modelEntry, startGateway } from "./gateway.ts";

export const WEATHER = {
  type: "function",
  function: {
    name: "get_weather",
    description: "Tells the weather",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  },
};
export const CLOCK = {
  type: "function",
  function: { name: "get_time", parameters: { type: "object", properties: {} } },
};
export const CODE = { type: "custom", custom: { name: "run_code", description: "Runs Python" } };

export const ask = {
  model: MODEL,
  messages: [{ role: "user", content: "How is the weather in Oslo?" }],
  tools: [WEATHER, CLOCK],
};

/** A call as Qwen 3 writes it. */
export const written = (name: string, args: unknown) =>
  `<tool_call>\n{"name": ${JSON.stringify(name)}, "arguments": ${typeof args === "string" ? args : JSON.stringify(args)}}\n</tool_call>`;
export const OSLO = written("get_weather", { city: "Oslo" });

export interface Script {
  /** Tokens a message. */
  readonly size?: number;
  readonly reason?: "stop" | "length";
}

/** Answers with texts, one a choice, as an engine does; the last token is the model's EOS unless it ended by length. */
export function play(texts: readonly string[], call: ScriptedCall, { size = 1, reason = "stop" }: Script = {}): void {
  const ids = texts.map((text) => [...encode(text), ...(reason === "stop" ? [IM_END] : [])]);
  for (let at = 0; at < Math.max(...ids.map((own) => own.length)); at += size)
    ids.forEach((own, index) => {
      const piece = own.slice(at, at + size);
      if (piece.length > 0) call.chunk(piece, { index, logprobs: logprobsOf(piece) }).idle();
    });
  ids.forEach((own, index) => {
    call.finish({ index, reason, completionTokens: own.length });
  });
  call.end();
}

const logprobsOf = (ids: readonly number[]) => ({
  tokenIds: ids,
  logprobs: Array.from(ids, (id) => -(id % 7) - 0.5),
  top: ids.map((id) => ({ tokenIds: [id, 1], logprobs: [-(id % 7) - 0.5, -9] })),
});

export interface CallFields {
  readonly id: string;
  readonly type: string;
  readonly function: { readonly name: string; readonly arguments: string };
}

export interface Answered {
  readonly index: number;
  readonly message: {
    readonly role: string;
    readonly content: string | null;
    readonly refusal: null;
    readonly reasoning_content?: string;
    readonly tool_calls?: CallFields[];
    readonly function_call?: { readonly name: string; readonly arguments: string };
  };
  readonly finish_reason: string;
  readonly logprobs: { content: { bytes: number[] }[] } | null;
  readonly token_ids?: number[];
}

export interface Whole {
  readonly choices: Answered[];
  readonly usage: { completion_tokens: number; completion_tokens_details: { reasoning_tokens: number } };
}

export const QWEN = { reasoning: "qwen3", tool: "qwen" };

export function qwenGateway(
  script: (call: ScriptedCall) => void,
  { args = [] as string[], parsers = QWEN as { reasoning: string | undefined; tool: string | undefined } } = {},
): Gateway {
  const engine = new ScriptedEngine((call) => queueMicrotask(() => script(call)));
  return startGateway(args, engine, [modelEntry({ parsers })]);
}

/** As OpenAI makes them, Mistral, and Kimi. */
const CALL_ID = /^(call_[0-9a-f]{24}|[a-zA-Z0-9]{9}|functions\.[a-z_]+:\d+)$/;

/** Ids of calls are random: their places take their place. */
function withoutIds(choices: readonly unknown[]): unknown[] {
  const copy = structuredClone(choices) as { message: { tool_calls?: { id: string }[] } }[];
  for (const { message } of copy)
    message.tool_calls?.forEach((call, k) => {
      expect(call.id).toMatch(CALL_ID);
      call.id = `${k}`;
    });
  return copy;
}

/**
 * Asks for an answer whole, streamed, and both with logprobs and token ids. All four must be the same answer, and the streams must
 * keep the grammar of chunks.
 */
export async function askAllWays(gateway: Gateway, body: object): Promise<Whole & { readonly read: ReadStream }> {
  const n = (body as { n?: number }).n ?? 1;
  const post = async (fields: object) => {
    const response = await gateway.post({ ...ask, ...body, ...fields });
    if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`);
    return response.text();
  };
  const DETAILS = { logprobs: true, top_logprobs: 2, return_token_ids: true };
  const STREAM = { stream: true, stream_options: { include_usage: true } };
  const whole = JSON.parse(await post({})) as Whole;
  const detailed = JSON.parse(await post(DETAILS)) as Whole;
  const messages = withoutIds(whole.choices.map(({ message, finish_reason }) => ({ message, finish_reason })));
  expect(withoutIds(detailed.choices.map(({ message, finish_reason }) => ({ message, finish_reason })))).toEqual(
    messages,
  );
  expect(detailed.usage).toEqual(whole.usage);
  const reads: ReadStream[] = [];
  for (const details of [{}, DETAILS]) {
    const read = readFrames(await post({ ...STREAM, ...details }));
    checkGrammar(read, n, true);
    expect(read.chunks.at(-1)?.usage).toEqual(whole.usage);
    const folded = fold(read, n) as (Pick<Answered, "message" | "finish_reason"> & {
      logprobs: unknown;
      token_ids: number[];
    })[];
    const got = folded.map(({ message, finish_reason }) => ({ message, finish_reason }));
    expect(withoutIds(got)).toEqual(messages);
    if (details === DETAILS) {
      expect(folded.map(({ logprobs }) => logprobs)).toEqual<unknown>(
        detailed.choices.map(({ logprobs }) => logprobs?.content),
      );
      expect(folded.map(({ token_ids }) => token_ids)).toEqual(
        detailed.choices.map(({ token_ids }) => token_ids ?? []),
      );
    }
    reads.push(read);
  }
  const tokens = detailed.choices.reduce((sum, { logprobs }) => sum + (logprobs?.content.length ?? 0), 0);
  expect(tokens).toBe(whole.usage.completion_tokens);
  return { ...whole, read: reads[0]! };
}
