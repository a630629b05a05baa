import { setImmediate } from "node:timers/promises";
import { BadJsonError, ClientClosedError, PayloadTooLargeError, UnsupportedMediaTypeError } from "../errors.ts";
import { rememberText } from "./raw-body.ts";

/** Deeper JSON than this is refused: nothing that a client API means nests so far, and recursive code must not meet it. */
const MAX_DEPTH = 256;
/** Each step of reading so large a body takes milliseconds: other requests get their turn between any two. */
const LARGE = 1 << 20;
const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * The body of a request as a JSON object: at most `limit` bytes, valid UTF-8, not nested beyond reason. `rawBody` tells the text of one
 * that prompts print parts of.
 */
export async function readJson(request: Request, limit: number): Promise<unknown> {
  const encoding = request.headers.get("content-encoding");
  if (encoding !== null && encoding.toLowerCase() !== "identity") {
    throw new UnsupportedMediaTypeError(
      `The content encoding '${encoding.slice(0, 40)}' is not supported: send the body as it is`,
    );
  }
  const bytes = await readBytes(request, limit);
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    throw new BadJsonError("The body is not valid UTF-8");
  }
  if (bytes.length > LARGE) await setImmediate();
  if (text.trim() === "") throw new BadJsonError("The body is empty: a JSON object is needed");
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new BadJsonError(
      `The body is not valid JSON: ${(error as Error).message.replace(/^JSON Parse error: /, "")}`,
    );
  }
  if (bytes.length > LARGE) await setImmediate();
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new BadJsonError("The body must be a JSON object");
  if (deeperThan(value, MAX_DEPTH)) throw new BadJsonError(`The body nests deeper than ${MAX_DEPTH} levels`);
  rememberText(value, text);
  return value;
}

async function readBytes(request: Request, limit: number): Promise<Uint8Array> {
  const tooLarge = () => new PayloadTooLargeError(`The body is larger than ${limit} bytes`);
  const length = request.headers.get("content-length");
  if (length !== null && Number(length) > limit) throw tooLarge();
  try {
    if (length !== null) return new Uint8Array(await request.arrayBuffer());
    const chunks: Uint8Array[] = [];
    let total = 0;
    for await (const chunk of request.body ?? []) {
      total += chunk.length;
      if (total > limit) throw tooLarge();
      chunks.push(chunk);
    }
    return Buffer.concat(chunks);
  } catch (error) {
    if (error instanceof PayloadTooLargeError) throw error;
    throw new ClientClosedError(); // the upload broke off
  }
}

/** Whether a JSON value nests deeper than `limit`, without recursion. */
function deeperThan(value: unknown, limit: number): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth >= limit) return true;
    const next: unknown[] = [];
    for (const item of level) {
      if (typeof item !== "object" || item === null) continue;
      for (const child of Array.isArray(item) ? item : Object.values(item)) {
        if (typeof child === "object" && child !== null) next.push(child);
      }
    }
    level = next;
  }
  return false;
}
