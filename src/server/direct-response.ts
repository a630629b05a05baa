/** What Bun gives to whoever writes a direct stream. */
export interface DirectController {
  write(data: string | Uint8Array): number | Promise<number>;
  flush(): number | Promise<number>;
  end(): void;
  close(reason?: Error): void;
}

/** Every SSE client skips comment lines. */
export const COMMENT = ":\n\n";

/**
 * A response of server-sent events over a direct stream of Bun, which is open until `pull` resolves. Headers leave when Bun asks for the
 * body.
 */
export function directResponse(
  pull: (controller: DirectController) => Promise<void>,
  cancel: () => void,
  headers: Record<string, string>,
  strategy?: QueuingStrategy,
): Response {
  const stream = { type: "direct" as const, pull, cancel };
  const body = new ReadableStream(stream as unknown as UnderlyingDefaultSource, strategy);
  return new Response(body, {
    headers: {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache",
      "x-accel-buffering": "no", // nginx would hold the events back
      ...headers,
    },
  });
}
