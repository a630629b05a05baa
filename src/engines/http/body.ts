/** The body of an answer, as it comes from the socket. */
import type { ClientRequest, IncomingMessage } from "node:http";
import { EngineError } from "../engine.ts";

/** Bytes that wait here for their reader; the socket is not read meanwhile. */
const HELD = 1 << 16;

export type Body = ReadableStream<Uint8Array>;

/** Errors with what `toError` makes of it when the connection breaks before the end. To cancel it ends the request. */
export function bodyOf(call: ClientRequest, answer: IncomingMessage, toError: (error: unknown) => EngineError): Body {
  let isOver = false;
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const fail = (error: unknown): void => {
          if (isOver) return;
          isOver = true;
          controller.error(toError(error));
        };
        // all that one read of the socket brings goes on in one piece
        let come: Buffer[] = [];
        const give = (): void => {
          const chunks = come;
          come = [];
          if (isOver || chunks.length === 0) return;
          controller.enqueue(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks));
          if ((controller.desiredSize ?? 0) <= 0) answer.pause();
        };
        answer.on("data", (bytes: Buffer) => {
          if (come.push(bytes) === 1) queueMicrotask(give);
        });
        answer.on("end", () => {
          if (isOver) return;
          give();
          isOver = true;
          controller.close();
        });
        answer.on("error", fail);
        answer.on("close", () => fail(new Error("the connection was closed")));
      },
      pull() {
        answer.resume();
      },
      cancel() {
        isOver = true;
        call.destroy();
      },
    },
    new ByteLengthQueuingStrategy({ highWaterMark: HELD }),
  );
}

/** All of a body that may have `limit` bytes. Rejects with EngineErrors: "failed" for a longer one. */
export async function readAll(body: Body, limit: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let total = 0;
  for await (const chunk of body) {
    total += chunk.length;
    if (total > limit) throw new EngineError("failed", `the engine's answer is larger than ${limit} bytes`);
    chunks.push(chunk);
  }
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
}
