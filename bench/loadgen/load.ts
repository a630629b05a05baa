/** Sends a load to a gateway and times every event of the answers. */
import { measure, type Send } from "./measure.ts";
import type { LoadOptions } from "./options.ts";
import { Pool } from "./pool.ts";
import { promptText } from "./prompts.ts";
import { Reply } from "./reply.ts";
import type { LoadResult } from "./result.ts";

/** The bytes of a request, ready to be written. */
function requestMessage(options: LoadOptions, index: number): Buffer {
  const text = promptText(options.prompts, options.promptTokens, options.seed, index);
  const body = JSON.stringify({
    model: options.model,
    ...(options.path.endsWith("/chat/completions")
      ? { messages: [{ role: "user", content: text }] }
      : { prompt: text }),
    max_tokens: options.maxTokens,
    stream: !options.unary,
    ...(options.unary ? {} : { stream_options: { include_usage: true } }),
    ...options.extra,
  });
  const prefix = options.url.pathname.replace(/\/+$/, "");
  const lines = [
    `POST ${prefix}${options.path} HTTP/1.1`,
    `Host: ${options.url.host}`,
    "Content-Type: application/json",
    "Accept: text/event-stream, application/json",
    ...options.headers,
    `Content-Length: ${Buffer.byteLength(body)}`,
  ];
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n${body}`);
}

function prepareRequest(options: LoadOptions, pool: Pool, index: number): Send {
  const message = requestMessage(options, index);
  return (tally, planned) =>
    new Promise((resolve) => {
      const reply = new Reply(!options.unary);
      const connection = pool.take();
      const sent = performance.now();
      if (planned !== undefined) tally.sendDelay.push(sent - planned);
      connection.send(message, {
        onBody: (status, bytes, start, end) => reply.feed(status, bytes, start, end, performance.now()),
        onDone: (status, problem) => {
          const end = performance.now();
          reply.end(status, end, options.expect, problem);
          if (reply.problem !== undefined) {
            tally.error(reply.problem, reply.detail);
            connection.close();
          } else {
            tally.done++;
            tally.outputTokens += reply.completionTokens ?? reply.stamps.length;
            tally.promptTokens += reply.promptTokens;
            tally.events += reply.stamps.length;
            tally.textBytes += reply.textBytes;
            tally.times(planned ?? sent, end, reply.stamps);
          }
          pool.give(connection);
          resolve();
        },
      });
    });
}

/** One repeat of a load. `base` is the number of requests sent before with this seed. */
export async function runLoad(options: LoadOptions, base = 0): Promise<LoadResult> {
  const pool = new Pool(options.url);
  try {
    return await measure(options, (index) => prepareRequest(options, pool, index), base);
  } finally {
    pool.close();
  }
}
