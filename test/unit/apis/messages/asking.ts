/** Messages over HTTP, asked whole and streamed; the two must be one answer. */
import { expect } from "bun:test";
import { check, type FoldedMessage, foldStream, message, readEvents } from "../../../support/schemas/messages.ts";
import { type Gateway, MODEL } from "../../server/gateway.ts";

export const WEATHER = {
  name: "get_weather",
  description: "Tells the weather",
  input_schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};
export const CLOCK = { name: "get_time", input_schema: { type: "object", properties: {} } };
export const user = (content: unknown) => ({ role: "user", content });
export const ask = { model: MODEL, max_tokens: 1000, messages: [user("How is the weather in Oslo?")] };

export const post = (gateway: Gateway, body: object, path = "/v1/messages", headers: Record<string, string> = {}) =>
  fetch(`${gateway.url}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });

/** Ids are random, and so are seals; everything else must repeat. */
function bare(answer: object): unknown {
  const copy = structuredClone(answer) as FoldedMessage & { type?: string };
  copy.content.forEach((block, k) => {
    if (block.type === "tool_use") block["id"] = `${k}`;
    delete block["partial_json"]; // of a call that was cut, of which the whole answer shows nothing
    if (block.type === "thinking") block["signature"] = String(block["signature"]).slice(0, 3);
  });
  return { ...copy, id: "" };
}

/** Refused with a status: the error. */
export async function refusal(
  gateway: Gateway,
  body: object,
): Promise<{ status: number; type: string; message: string }> {
  const response = await post(gateway, { ...ask, ...body });
  const { error } = (await response.json()) as { error: { type: string; message: string } };
  return { status: response.status, ...error };
}

export async function answer(gateway: Gateway, body: object = {}): Promise<FoldedMessage> {
  const whole = await post(gateway, { ...ask, ...body });
  if (whole.status !== 200) throw new Error(`${whole.status}: ${await whole.text()}`);
  const one = (await whole.json()) as FoldedMessage;
  check(message, one, "message");
  const streamed = await post(gateway, { ...ask, ...body, stream: true });
  expect(streamed.headers.get("content-type")).toStartWith("text/event-stream");
  expect(streamed.headers.get("request-id")).toBe(streamed.headers.get("x-request-id"));
  const folded = foldStream(readEvents(await streamed.text()));
  expect(bare(folded)).toEqual(bare(one));
  return one;
}
