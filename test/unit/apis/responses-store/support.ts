/** Gateways over one history, as threads or processes are, with engines that the test plays itself. */
import type { HistoryStore } from "../../../../src/history/store.ts";
import { testControl } from "../../../support/control.ts";
import { testHistory } from "../../../support/kept.ts";
import { checkResponse, type ResponseBody, type ResponseEvent } from "../../../support/schemas/responses.ts";
import { readEvents } from "../../../support/schemas/responses-order.ts";
import { until as soon } from "../../../support/until.ts";
import { encode, IM_END } from "../../generation/demo-tokenizer.ts";
import { type ScriptedCall, ScriptedEngine } from "../../generation/scripted-engine.ts";
import { type Gateway, modelEntry, startGateway } from "../../server/gateway.ts";
import { QWEN } from "../../server/tool-chat.ts";
import { answered, post } from "../responses/http.ts";

export function gatewayOver(
  history: HistoryStore | null = testHistory(),
  script?: (call: ScriptedCall) => void,
  more: Parameters<typeof modelEntry>[0] = {},
): Gateway {
  const engine = new ScriptedEngine(script === undefined ? undefined : (call) => queueMicrotask(() => script(call)));
  return startGateway([], engine, [modelEntry({ parsers: QWEN, ...more })], 10, testControl, history);
}

/** The engine's nth call, once it has come. */
export async function engineCall({ engine }: Gateway, n = 0): Promise<ScriptedCall> {
  await soon(() => engine.calls[n] !== undefined, `call ${n} of the engine`);
  return engine.calls[n]!;
}

export const say = (call: ScriptedCall, text: string): void => {
  call.chunk(encode(text)).idle();
};

export function finish(call: ScriptedCall): void {
  call.chunk([IM_END]);
  call.finish({ completionTokens: 5 });
  call.end();
}

export async function inBackground(gateway: Gateway, body: object = {}): Promise<ResponseBody> {
  const value = await answered(await post(gateway, { background: true, ...body }));
  checkResponse(value);
  return value;
}

export const get = (gateway: Gateway, path: string, init: RequestInit = {}): Promise<Response> =>
  fetch(`${gateway.url}/v1/responses/${path}`, init);

export async function retrieved(gateway: Gateway, id: string): Promise<ResponseBody> {
  const value = await answered(await get(gateway, id));
  checkResponse(value);
  return value;
}

/** The response once its status is one of those. */
export async function until(gateway: Gateway, id: string, ...statuses: readonly string[]): Promise<ResponseBody> {
  for (let i = 0; ; i++) {
    const body = await retrieved(gateway, id);
    if (statuses.includes(body.status)) return body;
    if (i === 2000) throw new Error(`${id} stays ${body.status}`);
    await Bun.sleep(10);
  }
}

/** All events behind `after`; throws where the stream does not end well. */
export async function streamOf(gateway: Gateway, id: string, after?: number): Promise<ResponseEvent[]> {
  const from = after === undefined ? "" : `&starting_after=${after}`;
  const response = await get(gateway, `${id}?stream=true${from}`);
  if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`);
  const { events, done } = readEvents(await response.text());
  if (!done) throw new Error("no [DONE]");
  return events;
}

export const cancel = (gateway: Gateway, id: string): Promise<Response> =>
  get(gateway, `${id}/cancel`, { method: "POST" });
