/** Interactions over HTTP with an engine in memory: asked whole and streamed, with each object and event checked. */
import { expect } from "bun:test";
import {
  check,
  checkEvents,
  checkInteraction,
  googleError,
  type Interaction,
  type InteractionEvent,
  readEvents,
  type Told,
} from "../../../support/schemas/interactions.ts";
import { decodeAll } from "../../generation/demo-tokenizer.ts";
import { type ScriptedCall, ScriptedEngine } from "../../generation/scripted-engine.ts";
import { type Gateway, MODEL, modelEntry, startGateway } from "../../server/gateway.ts";
import { play, QWEN } from "../../server/tool-chat.ts";

export const WEATHER = {
  type: "function",
  name: "get_weather",
  description: "Tells the weather",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};
export const CLOCK = { type: "function", name: "get_time", parameters: { type: "object", properties: {} } };

export function interactionsGateway(
  script: (call: ScriptedCall) => void,
  more: Parameters<typeof modelEntry>[0] = {},
  args: string[] = [],
): Gateway {
  const engine = new ScriptedEngine((call) => queueMicrotask(() => script(call)));
  return startGateway(args, engine, [modelEntry({ parsers: QWEN, ...more })]);
}

/** Answers each prompt with the text of the first of these whose key is in it. */
export const answers =
  (texts: Readonly<Record<string, string>>) =>
  (call: ScriptedCall): void => {
    const prompt = promptOf(call);
    const found = Object.entries(texts).find(([key]) => prompt.includes(key));
    play([found?.[1] ?? "Fine."], call);
  };

export const promptOf = ({ request }: ScriptedCall): string => decodeAll([...request.tokenIds], false);

export const post = (gateway: Gateway, body: unknown, path = "/v1beta/interactions"): Promise<Response> =>
  fetch(`${gateway.url}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: typeof body === "string" ? body : JSON.stringify({ model: MODEL, input: "Hi", ...(body as object) }),
  });

/** Refused: the error. */
export async function refusal(
  gateway: Gateway,
  body: unknown,
): Promise<{ code: number; status: string; message: string }> {
  const response = await post(gateway, body);
  const value = (await response.json()) as { error: { code: number; status: string; message: string } };
  check(googleError, value, "error");
  expect(value.error.code).toBe(response.status);
  return value.error;
}

export async function whole(gateway: Gateway, body: unknown, path?: string): Promise<Interaction> {
  const response = await post(gateway, body, path);
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${response.status}: ${text}`);
  expect(response.headers.get("content-type")).toStartWith("application/json");
  expect(response.headers.get("x-request-id")).toBeTruthy();
  return checkInteraction(JSON.parse(text));
}

export interface Streamed extends Told {
  readonly events: readonly InteractionEvent[];
}

export async function told(response: Response): Promise<Streamed> {
  if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`);
  expect(response.headers.get("content-type")).toStartWith("text/event-stream");
  expect(response.headers.get("x-request-id")).toBeTruthy();
  const { events, done } = readEvents(await response.text());
  expect(done).toBe(true);
  return { ...checkEvents(events), events };
}

export const streamed = async (gateway: Gateway, body: object): Promise<Streamed> =>
  told(await post(gateway, { ...body, stream: true }));

export async function get(gateway: Gateway, id: string, query = ""): Promise<Interaction> {
  const response = await fetch(`${gateway.url}/v1beta/interactions/${id}${query}`);
  if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`);
  return checkInteraction(await response.json());
}

/** What of an interaction is the same in two that say the same. */
export const comparable = ({
  steps,
  last,
}: {
  steps: unknown;
  last: Pick<Interaction, "status" | "usage" | "errors">;
}): unknown =>
  JSON.parse(
    JSON.stringify({ steps, status: last.status, usage: last.usage, errors: last.errors })
      .replaceAll(/"call_[0-9a-f]{24}"/g, '"call"')
      .replaceAll(/"e1\.[^"]*"/g, '"sealed"'),
  );

/** Asks for an answer whole and streamed, and for the stored stream; all must be the same. */
export async function askAllWays(gateway: Gateway, body: object): Promise<{ one: Interaction; stream: Streamed }> {
  const one = await whole(gateway, body);
  const stream = await streamed(gateway, body);
  expect(comparable(stream)).toEqual(comparable({ steps: one.steps, last: one }));
  const { id } = stream.last;
  expect(id).not.toBe("");
  const stored = await get(gateway, id);
  const { steps: _, ...members } = stored;
  expect(members).toMatchObject(stream.last);
  expect(stored.steps).toEqual([...stream.steps]);
  const again = await told(await fetch(`${gateway.url}/v1beta/interactions/${id}?stream=true`));
  expect(again.steps).toEqual(stream.steps);
  expect(again.last).toEqual(stream.last);
  return { one, stream };
}
