import { Value } from "@sinclair/typebox/value";
import { type ChatRequest, chatRequest } from "../../../../src/apis/chat/schema.ts";
import { invalidBody } from "../../../../src/server/validation.ts";

/** A request after the check by its schema, as the route hands it on. Throws the 400 that a client would get. */
export function checked(fields: Record<string, unknown> = {}): ChatRequest {
  const body: Record<string, unknown> = { model: "m", messages: [{ role: "user", content: "Hi" }], ...fields };
  for (const [name, value] of Object.entries(body)) if (value === undefined) delete body[name];
  if (!Value.Check(chatRequest, body)) throw invalidBody(Value.Errors(chatRequest, body) as never);
  return body;
}
