/** A gateway in front of an embedding model: a real tokenizer with `[CLS]` and `[SEP]`, an engine whose vectors a test makes. */

import { expect } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Engine } from "../../../../src/engines/engine.ts";
import type { ModelEntry } from "../../../../src/fleet/snapshot.ts";
import { loadTokenizer, openTokenizer } from "../../../../src/tokenizer/load.ts";
import { checkPooling } from "../../../support/schemas/pooling.ts";
import { ScriptedEngine } from "../../generation/scripted-engine.ts";
import { type Gateway, MODEL, modelEntry, startGateway } from "../../server/gateway.ts";

export const [CLS, SEP] = [2, 3];

async function bert() {
  const file = join(import.meta.dir, "../../../golden/tokenizer/small/wordpiece.json");
  const json = JSON.parse(readFileSync(file, "utf8")) as Record<string, unknown>;
  const special = (id: string) => ({ SpecialToken: { id, type_id: 0 } });
  const text = (id: string) => ({ Sequence: { id, type_id: 0 } });
  json["post_processor"] = {
    type: "TemplateProcessing",
    single: [special("[CLS]"), text("A"), special("[SEP]")],
    pair: [special("[CLS]"), text("A"), special("[SEP]"), text("B"), special("[SEP]")],
    special_tokens: {
      "[CLS]": { id: "[CLS]", ids: [CLS], tokens: ["[CLS]"] },
      "[SEP]": { id: "[SEP]", ids: [SEP], tokens: ["[SEP]"] },
    },
  };
  return loadTokenizer(new Map([["tokenizer.json", Buffer.from(JSON.stringify(json))]]));
}

const handle = await bert();
const tokenizer = openTokenizer(handle);
/** Size of the vocabulary. */
export const VOCAB = tokenizer.vocabSize;
/** Ids of a text, without special tokens. */
export const idsOf = (text: string): number[] => Array.from(tokenizer.encode(text));

export type Embedder = (ids: readonly number[], signal: AbortSignal) => Promise<readonly number[]> | readonly number[];

/** A vector that tells its prompt: number and sum of the ids. */
export const telling: Embedder = (ids) => [ids.length, ids.reduce((sum, id) => sum + id, 0), 0.1];

export interface PoolingGateway extends Gateway {
  /** Prompts as the engine got them, in the order of arrival. */
  readonly prompts: number[][];
}

export function poolingGateway(
  embedder: Embedder = telling,
  more: Partial<ModelEntry> = {},
  args: string[] = [],
): PoolingGateway {
  const prompts: number[][] = [];
  const embed: Engine["embed"] = async ({ tokenIds }, signal) => {
    const ids = Array.from(tokenIds);
    prompts.push(ids);
    return { embedding: Float32Array.from(await embedder(ids, signal)), promptTokens: ids.length };
  };
  const model = modelEntry({
    tokenizer: handle,
    template: undefined,
    contextLength: 16,
    pooling: { matryoshka: undefined, classes: undefined },
    ...more,
  });
  return Object.assign(startGateway(args, new ScriptedEngine(undefined, embed), [model]), { prompts });
}

export const send = (gateway: Gateway, path: string, body: object, init: RequestInit = {}): Promise<Response> =>
  fetch(gateway.url + path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: MODEL, ...body }),
    ...init,
  });

/** The answer's JSON; fails for another status, and unless a success has its schema. Nothing of the request is left behind. */
export async function answer(gateway: Gateway, path: string, body: object, status = 200) {
  const response = await send(gateway, path, body);
  const text = await response.text();
  expect([response.status, text]).toEqual([status, text]);
  expect(response.headers.get("content-type")).toStartWith("application/json");
  expect(response.headers.get("x-request-id")).toBeTruthy();
  expect(gateway.scopes.size).toBe(0);
  expect(gateway.board.running(gateway.slot)).toBe(0);
  const json = JSON.parse(text) as Record<string, unknown>;
  if (status === 200) checkPooling(path, body, json);
  return json;
}

/** The error of a refused request, in OpenAI's shape. */
export async function refused(gateway: Gateway, path: string, body: object, status = 400) {
  const { error } = await answer(gateway, path, body, status);
  expect(Object.keys(error as object).sort()).toEqual(["code", "message", "param", "type"]);
  return error as { code: string; message: string; param: string | null; type: string };
}
