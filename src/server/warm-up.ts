import type { ModelEntry } from "../fleet/snapshot.ts";

/** Requests per model: enough for the first one of a client not to pay for compiling the way in (tens of milliseconds). */
const REQUESTS = 20;

/**
 * Sends requests through the app that stop right before an engine would be asked: body, validation, template, tokenizer and
 * sampling are then compiled and warm. Gives way to real requests between any two.
 */
export async function warmUp(
  handle: (request: Request) => Promise<Response>,
  models: readonly ModelEntry[],
  apiKey?: string,
): Promise<void> {
  for (const { id, contextLength } of models) {
    if (contextLength === 0) continue; // nothing would stop the request before the engine
    const body = JSON.stringify({
      model: id,
      messages: [{ role: "user", content: "Warm words for the first request of the day. ".repeat(20) }],
      stream: true,
      max_tokens: 2 ** 31 - 1, // no context is that long: refused after the tokenizer, before a worker is chosen
    });
    for (let i = 0; i < REQUESTS; i++) {
      const headers = {
        "content-type": "application/json",
        ...(apiKey !== undefined && { authorization: `Bearer ${apiKey}` }),
      };
      await handle(new Request("http://localhost/v1/chat/completions", { method: "POST", headers, body }));
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}
