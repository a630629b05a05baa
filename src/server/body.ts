import { setImmediate } from "node:timers/promises";
import { BadJsonError, ClientClosedError, PayloadTooLargeError, UnsupportedMediaTypeError } from "../errors.ts";
import { parseObject, refuseDepth } from "./json-object.ts";
import { rememberText } from "./raw-body.ts";
import { parseSliced } from "./sliced-json.ts";

/** Reading so large a body takes milliseconds: other requests get their turn meanwhile. */
const LARGE = 1 << 18;
const utf8 = new TextDecoder("utf-8", { fatal: true });

export interface JsonRule {
  /** Bytes that it may have. */
  readonly limit: number;
  /** No body is an empty object. */
  readonly mayLack?: boolean;
  /** Throws a GatewayError for a large body of the wrong form. Of small ones the route finds out: its error takes time by their size. */
  readonly checkLarge?: (body: unknown) => void;
  /** Gets every body with its text. */
  readonly onRead?: (body: object, text: string) => void;
}

/**
 * The body of a request as a JSON object: valid UTF-8, not nested beyond reason. `rawBody` tells the text of one that prompts print parts of.
 * Throws GatewayErrors.
 */
export async function readJson(
  request: Request,
  { limit, mayLack = false, checkLarge, onRead }: JsonRule,
): Promise<unknown> {
  const encoding = request.headers.get("content-encoding");
  if (encoding !== null && encoding.toLowerCase() !== "identity") {
    throw new UnsupportedMediaTypeError(
      `The content encoding '${encoding.slice(0, 40)}' is not supported: send the body as it is`,
    );
  }
  const bytes = await readBytes(request, limit);
  if (mayLack && bytes.length === 0) return {};
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    throw new BadJsonError("The body is not valid UTF-8");
  }
  const isLarge = bytes.length > LARGE;
  if (isLarge) await setImmediate();
  const value = isLarge ? await parseSliced(text, "The body") : parseObject(text, "The body");
  if (!isLarge) refuseDepth(value, "The body");
  if (isLarge) {
    checkLarge?.(value);
    await setImmediate();
  }
  rememberText(value, text);
  onRead?.(value, text);
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
