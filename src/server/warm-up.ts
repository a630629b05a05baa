import type { Model } from "../fleet/view.ts";
import { sampleText } from "../tokenizer/sample-text.ts";

/** Requests per model: enough for the first one of a client not to pay for compiling the way in (tens of milliseconds). */
const REQUESTS = 20;
/** Tokens of a request's message. */
const TOKENS = 300;

/**
 * Sends requests through the app that stop right before an engine would be asked: body, validation, template, tokenizer and
 * sampling are then compiled and warm. Each has a text of its own, by `thread` and number, as texts that another thread has sent are in
 * the shared cache already. Gives way to real requests between any two.
 */
export async function warmUp(
  handle: (request: Request) => Promise<Response>,
  models: readonly Model[],
  thread: number,
  apiKey?: string,
): Promise<void> {
  for (const { entry, tokenizer } of models) {
    if (entry.pooling !== undefined) continue; // it does not chat
    if (entry.contextLength === 0) continue; // nothing would stop the request before the engine
    for (let i = 0; i < REQUESTS; i++) {
      const body = JSON.stringify({
        model: entry.id,
        messages: [{ role: "user", content: sampleText(tokenizer, TOKENS, thread * REQUESTS + i) }],
        stream: true,
        max_tokens: 2 ** 31 - 1, // no context is that long: refused after the tokenizer, before a worker is chosen
      });
      const headers = {
        "content-type": "application/json",
        ...(apiKey !== undefined && { authorization: `Bearer ${apiKey}` }),
      };
      await handle(new Request("http://localhost/v1/chat/completions", { method: "POST", headers, body }));
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}
