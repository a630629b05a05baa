/** A gateway whose engine answers raw prompts, and readers of its answers. */
import { expect } from "bun:test";
import type { TokenLogprobs } from "../../../../src/engines/engine.ts";
import { type Completion, checkCompletion, foldCompletion } from "../../../support/schemas/completions.ts";
import { END_OF_TEXT, encode } from "../../generation/demo-tokenizer.ts";
import { type ScriptedCall, ScriptedEngine } from "../../generation/scripted-engine.ts";
import { type Gateway, MODEL, modelEntry, startGateway } from "../../server/gateway.ts";

export const PATH = "/v1/completions";
export const TEXT = "naïve 👩‍👩‍👧 日本語 done";

const open: Gateway[] = [];
export function started(engine: ScriptedEngine, models = [modelEntry()]): Gateway {
  const gateway = startGateway([], engine, models);
  open.push(gateway);
  return gateway;
}
/** Stops all that were started. */
export const stopAll = () => Promise.all(open.splice(0).map((gateway) => gateway.stop()));

/** Made-up but repeatable rows: a token's own logprob follows from its id, and two others stand beside it. */
export function rows(ids: readonly number[], count: number, firstIsEmpty = false): TokenLogprobs {
  const own = (id: number) => -Math.fround((id % 97) / 128);
  return {
    tokenIds: ids,
    logprobs: ids.map((id, i) => (firstIsEmpty && i === 0 ? null : own(id))),
    top: count === 0 ? [] : ids.map((id) => ({ tokenIds: [id, 15, 16].slice(0, count), logprobs: [own(id), -5, -6] })),
  };
}

/** Says `text` in pieces of `size` tokens, with the logprobs that the request asks for, and ends as the request lets it. */
export function say(call: ScriptedCall, text: string, { size = 1, index = 0, cachedTokens = 0 } = {}): void {
  const { sampling, tokenIds } = call.request;
  const all = [...encode(text), END_OF_TEXT];
  const ids = all.slice(0, sampling.maxTokens ?? all.length);
  const prompt = sampling.promptLogprobs;
  for (let at = 0; at < ids.length; at += size) {
    const piece = ids.slice(at, at + size);
    call.chunk(piece, {
      index,
      cachedTokens,
      ...(sampling.logprobs !== undefined && { logprobs: rows(piece, sampling.logprobs) }),
      ...(at === 0 && prompt !== undefined && { promptLogprobs: rows(Array.from(tokenIds), prompt, true) }),
    });
    call.idle();
  }
  const reason = ids.length === all.length ? "stop" : "length";
  call.finish({ index, reason, completionTokens: ids.length, cachedTokens });
}

/** An engine that says what `text` gives for each choice of a prompt, `size` tokens a message. */
export const speaking = (
  text: (call: ScriptedCall, choice: number) => string,
  size: () => number = () => 1,
): ScriptedEngine =>
  new ScriptedEngine((call) => {
    queueMicrotask(() => {
      for (let index = 0; index < (call.request.sampling.n ?? 1); index++)
        say(call, text(call, index), { size: size(), index });
      call.end();
    });
  });

export async function post(gateway: Gateway, path: string, body: object): Promise<Response> {
  return await fetch(gateway.url + path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: MODEL, ...body }),
  });
}

/** The answer's JSON; throws for failures. */
export async function answered<T>(gateway: Gateway, path: string, body: object): Promise<T> {
  const response = await post(gateway, path, body);
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${response.status} ${text}`);
  return JSON.parse(text) as T;
}

/** The error's status, code, param and message. */
export async function refused(gateway: Gateway, path: string, body: object) {
  const response = await post(gateway, path, body);
  const { error } = (await response.json()) as { error?: { code: string; param: string; message: string } };
  return [response.status, error?.code, error?.param, error?.message] as const;
}

/** The data of each frame of a stream. */
export async function frames(gateway: Gateway, path: string, body: object): Promise<string[]> {
  const response = await post(gateway, path, { ...body, stream: true });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${response.status} ${text}`);
  return text
    .split("\n\n")
    .slice(0, -1)
    .map((frame) => {
      if (!frame.startsWith("data: ") || frame.includes("\n")) throw new Error(`no data frame: ${frame}`);
      return frame.slice(6);
    });
}

export const completionOf = async (body: object, from: Gateway): Promise<Completion> =>
  checkCompletion(await answered(from, PATH, body));
export const textOf = (completion: Completion, index = 0): string => completion.choices[index]!.text;

/** Prompts of a request, as the engine got them. */
export async function promptsOf(body: object, from: Gateway): Promise<number[][]> {
  const before = from.engine.calls.length;
  await completionOf(body, from);
  return from.engine.calls.slice(before).map((call) => Array.from(call.request.tokenIds));
}

/** Whole and streamed say the same; gives it. */
export async function completedBothWays(body: object, from: Gateway): Promise<Completion> {
  const whole = await completionOf(body, from);
  const folded = foldCompletion(await frames(from, PATH, { ...body, stream_options: { include_usage: true } }));
  const { id, created, ...rest } = whole;
  expect(folded).toEqual(rest);
  return whole;
}
