/** Responses over HTTP with an engine in memory: asked whole and streamed, with each object and event checked. */
import { afterEach, expect } from "bun:test";
import { checkResponse, type ResponseBody, type ResponseEvent } from "../../../support/schemas/responses.ts";
import { checkEvents, readEvents } from "../../../support/schemas/responses-order.ts";
import { decodeAll } from "../../generation/demo-tokenizer.ts";
import { type ScriptedCall, ScriptedEngine } from "../../generation/scripted-engine.ts";
import { type Gateway, MODEL, modelEntry, startGateway } from "../../server/gateway.ts";
import { play, QWEN } from "../../server/tool-chat.ts";

export function responsesGateway(
  script: (call: ScriptedCall) => void,
  more: Parameters<typeof modelEntry>[0] = {},
): Gateway {
  const engine = new ScriptedEngine((call) => queueMicrotask(() => script(call)));
  return startGateway([], engine, [modelEntry({ parsers: QWEN, ...more })]);
}

/** Gateways of a test, stopped behind it. Call it once in a file. */
export function gatewaysOfTests() {
  const open: Gateway[] = [];
  afterEach(async () => {
    for (const gateway of open.splice(0)) await gateway.stop();
  });
  const stopped = (gateway: Gateway): Gateway => {
    open.push(gateway);
    return gateway;
  };
  return {
    stopped,
    /** One whose engine always says the same. */
    answering: (
      text: string,
      more: Parameters<typeof play>[2] = {},
      entry: Parameters<typeof modelEntry>[0] = {},
    ): Gateway => stopped(responsesGateway((call) => play([text], call, more), entry)),
  };
}

/** The prompt that an engine was sent, with its special tokens. */
export const promptOf = (call: ScriptedCall | undefined): string => decodeAll([...call!.request.tokenIds], false);

export const WEATHER = {
  type: "function",
  name: "get_weather",
  description: "Tells the weather",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  strict: null,
};

export const post = (gateway: Gateway, body: unknown, init: RequestInit = {}): Promise<Response> =>
  fetch(`${gateway.url}/v1/responses`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: typeof body === "string" ? body : JSON.stringify({ model: MODEL, input: "Hi", ...(body as object) }),
    ...init,
  });

/** The body of an answer of a status. */
export async function answered(response: Response, status = 200): Promise<Record<string, unknown>> {
  const value = (await response.json()) as Record<string, unknown>;
  if (response.status !== status) throw new Error(`${response.status}: ${JSON.stringify(value)}`);
  return value;
}

export async function whole(gateway: Gateway, body: unknown): Promise<ResponseBody> {
  const value = await answered(await post(gateway, body));
  checkResponse(value);
  return value;
}

export async function streamed(
  gateway: Gateway,
  body: object,
): Promise<{ body: ResponseBody; events: ResponseEvent[] }> {
  const response = await post(gateway, { ...body, stream: true });
  if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`);
  expect(response.headers.get("content-type")).toStartWith("text/event-stream");
  const { events, done } = readEvents(await response.text());
  expect(done).toBe(true);
  return { body: checkEvents(events), events };
}

/** A response without what differs between two that say the same. */
export const comparable = (body: ResponseBody): unknown =>
  JSON.parse(
    JSON.stringify({ ...body, created_at: 0, completed_at: 0 })
      .replaceAll(/"(resp|rs|msg|fc|ctc)_[0-9a-f]{50}"/g, '"$1"')
      .replaceAll(/"call_[0-9a-f]{24}"/g, '"call"')
      .replaceAll(/"e1\.[^"]*"/g, '"sealed"'),
  );

/** Asks for an answer whole and streamed; both must be the same. */
export async function askBothWays(
  gateway: Gateway,
  body: object,
): Promise<{ body: ResponseBody; events: ResponseEvent[] }> {
  const one = await whole(gateway, body);
  const other = await streamed(gateway, body);
  expect(comparable(other.body)).toEqual(comparable(one));
  return other;
}
