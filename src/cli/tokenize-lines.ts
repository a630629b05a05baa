/** `collie tokenize --jsonl`: a line of JSON in, a line of JSON out, many lines at a time. */
import { ID_BYTES, writeIds } from "../tokenizer/id-text.ts";
import { type EncodeOptions, type Tokenizer, TokenizerError } from "../tokenizer/tokenizer.ts";
import { type BlockWriter, LineTooLongError } from "./byte-streams.ts";

/** A line that can't be taken; the lines before it have been answered. */
export class LineError extends Error {
  override readonly name = "LineError";
  constructor(
    /** From 1. */
    readonly line: number,
    message: string,
  ) {
    super(`line ${line}: ${message}`);
  }
}

const NEWLINE = 10;
/** Ids written at once. */
const SLICE = 1 << 16;
/** UTF-16 units of decoded lines that are written at once. */
const PENDING = 1 << 18;
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** What is wrong with a value; undefined for a good one. */
type Check<T> = (value: unknown) => value is T;

/** JSON strings in, JSON arrays of ids out. Throws LineError, and what the output throws. */
export function encodeLines(
  blocks: Iterable<Buffer>,
  tokenizer: Tokenizer,
  options: EncodeOptions,
  out: BlockWriter,
): void {
  const encode = (text: string, line: number): void => {
    const ids = inLine(line, () => tokenizer.encode(text, options));
    out.room(2);
    out.buffer[out.used++] = 91;
    for (let from = 0; from < ids.length; from += SLICE) {
      const to = Math.min(from + SLICE, ids.length);
      out.room((to - from) * ID_BYTES + 3);
      if (from > 0) out.buffer[out.used++] = 44;
      out.used = writeIds(ids, from, to, out.buffer, out.used);
    }
    out.room(2);
    out.buffer[out.used++] = 93;
    out.buffer[out.used++] = NEWLINE;
  };
  eachBlock(blocks, out, (block, line) => {
    const texts = stringsOf(block);
    if (texts === undefined)
      return eachLine(block, line, (json, at) => encode(parsed(json, at, isString, "a JSON string"), at));
    for (let i = 0; i < texts.length; i++) encode(texts[i]!, line + i);
    return texts.length;
  });
}

/** JSON arrays of ids in, JSON strings out. Throws LineError, and what the output throws. */
export function decodeLines(
  blocks: Iterable<Buffer>,
  tokenizer: Tokenizer,
  skipSpecialTokens: boolean,
  out: BlockWriter,
): void {
  const decoder = tokenizer.decoder({ skipSpecialTokens });
  const ids: IdList = { ids: new Uint32Array(1024), count: 0 };
  let pending: string[] = [];
  let units = 0;
  const give = (): void => {
    if (pending.length > 0) out.text(`${pending.join("\n")}\n`);
    pending = [];
    units = 0;
  };
  eachBlock(blocks, out, (block, first) => {
    try {
      return eachLine(block, first, (json, line) => {
        if (!readIds(json, ids)) {
          const list = parsed(json, line, isIdList, "a JSON array of token ids");
          ids.ids = Uint32Array.from(list);
          ids.count = list.length;
        }
        let text = "";
        for (let i = 0; i < ids.count; i++) text += decoder.push(ids.ids[i]!);
        text += decoder.end();
        pending.push(JSON.stringify(text));
        units += text.length;
        if (units > PENDING) give();
      });
    } finally {
      give();
    }
  });
}

/** `take` gets blocks of whole lines with the number of their first line and gives how many lines they were. */
function eachBlock(
  blocks: Iterable<Buffer>,
  out: BlockWriter,
  take: (block: Buffer, firstLine: number) => number,
): void {
  let line = 1;
  try {
    for (const block of blocks) {
      line += take(block, line);
      out.flush(); // the next block may be long in coming
    }
  } catch (error) {
    if (error instanceof LineError) out.flush();
    if (error instanceof LineTooLongError) throw new LineError(line, error.message);
    throw error;
  }
}

function eachLine(block: Buffer, firstLine: number, take: (line: Buffer, number: number) => void): number {
  let line = firstLine;
  for (let at = 0; at < block.length; line++) {
    const found = block.indexOf(NEWLINE, at);
    const end = found < 0 ? block.length : found;
    take(block.subarray(at, end), line);
    at = end + 1;
  }
  return line - firstLine;
}

/**
 * The strings of a block, if each line is one. Read as one array: a string cannot hold a bare newline, so none reaches over the end of
 * a line, and no line can be without one; then as many strings as lines means one each.
 */
function stringsOf(block: Buffer): string[] | undefined {
  const end = block[block.length - 1] === NEWLINE ? block.length - 1 : block.length;
  let values: unknown[];
  let text: string;
  try {
    text = utf8.decode(block.subarray(0, end));
    values = JSON.parse(`[${text.replaceAll("\n", ",\n")}]`) as unknown[];
  } catch {
    return undefined;
  }
  let lines = 1;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lines++;
  return values.length === lines && values.every((value) => typeof value === "string") ? values : undefined;
}

const isString: Check<string> = (value) => typeof value === "string";
const isIdList: Check<number[]> = (value): value is number[] => Array.isArray(value) && value.every(isTokenId);

/** Is this a number that can be a token's id? Whether a vocabulary has it is another question. */
export function isTokenId(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= 0xffff_ffff;
}

function parsed<T>(json: Buffer, line: number, check: Check<T>, wanted: string): T {
  let text: string;
  try {
    text = utf8.decode(json);
  } catch {
    throw new LineError(line, "is not valid UTF-8");
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const reason = (error as Error).message.replace(/^JSON Parse error: /, "");
    throw new LineError(line, text.trim() === "" ? `is empty, not ${wanted}` : `is not JSON: ${reason}`);
  }
  if (!check(value)) throw new LineError(line, `is not ${wanted}`);
  return value;
}

interface IdList {
  ids: Uint32Array;
  count: number;
}

/** Reads `[1,2,3]` in its usual forms; false for anything else, which may be right all the same. */
function readIds(json: Buffer, into: IdList): boolean {
  let at = 0;
  let count = 0;
  const end = json.length;
  const skip = (): number => {
    let byte = json[at];
    while (byte === 32 || byte === 9 || byte === 13) byte = json[++at];
    return byte ?? -1;
  };
  if (skip() !== 91) return false;
  at++;
  if (skip() === 93) at++;
  else
    for (;;) {
      let digit = skip() - 48;
      const from = at;
      let id = 0;
      while (digit >= 0 && digit <= 9) {
        id = id * 10 + digit;
        digit = (json[++at] ?? 0) - 48;
      }
      if (at === from || at - from > 10 || id > 0xffff_ffff || (json[from] === 48 && at - from > 1)) return false;
      if (count === into.ids.length) {
        const larger = new Uint32Array(count * 2);
        larger.set(into.ids);
        into.ids = larger;
      }
      into.ids[count++] = id;
      const next = skip();
      at++;
      if (next === 93) break;
      if (next !== 44) return false;
    }
  skip();
  into.count = count;
  return at >= end;
}

/** The same as `work`; a text that the tokenizer can't take is an error of its line. */
function inLine<T>(line: number, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof TokenizerError) throw new LineError(line, error.message);
    throw error;
  }
}
