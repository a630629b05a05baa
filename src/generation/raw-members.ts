/** Parts of a request whose numbers and key order must survive, as prompts print them: read from the request's own text. */
import { InvalidRequestError } from "../errors.ts";
import { PIECE_TEXT, type Steps } from "../steps.ts";
import { json } from "../template/encoders/fields.ts";
import { PLAIN } from "../template/engine/json.ts";
import { jsonSteps } from "../template/engine/json-steps.ts";
import { refill } from "../template/engine/limits.ts";
import { TemplateLimitError } from "../template/errors.ts";
import { type JsonValue, losslessSteps, parseLossless } from "../template/lossless-json.ts";

const QUOTE = 34;
const COMMA = 44;
const COLON = 58;
const OPEN_LIST = 91;
const CLOSE_LIST = 93;
const OPEN_OBJECT = 123;
const CLOSE_OBJECT = 125;

/** Where the string that begins at `from` ends, behind its quote. */
function endOfString(json: string, from: number): number {
  for (let end = json.indexOf('"', from + 1); end >= 0; end = json.indexOf('"', end + 1)) {
    let slashes = 0;
    while (json[end - 1 - slashes] === "\\") slashes++;
    if (slashes % 2 === 0) return end + 1;
  }
  return json.length;
}

/**
 * A member of a JSON object, read by `parseLossless`; undefined where the object has none of this name. The last one holds, as for
 * `JSON.parse`. `json` must be valid: what it is outside of the member is not checked.
 */
export function* rawMemberSteps(json: string, name: string): Steps<JsonValue | undefined> {
  const found = yield* rawMemberTextSteps(json, name);
  return found === undefined ? undefined : yield* losslessSteps(found);
}

/** The text of such a member, without white space around it. */
export function rawMemberText(json: string, name: string): string | undefined {
  const finder = memberFinder(json, name);
  scanTopLevel(json, finder);
  return finder.member();
}

/** The same in steps. */
export function* rawMemberTextSteps(json: string, name: string): Steps<string | undefined> {
  const finder = memberFinder(json, name);
  yield* scanned(json, finder);
  return finder.member();
}

/** The same JSON with another value of a member, where it has one of this name. `json` must be valid. */
export function withMember(json: string, name: string, value: string): string {
  const found = memberSpan(json, name);
  return found === undefined ? json : json.slice(0, found.from) + value + json.slice(found.to);
}

/** Where the value of a member is, with the white space around it. */
function memberSpan(json: string, name: string): Span | undefined {
  const finder = memberFinder(json, name);
  scanTopLevel(json, finder);
  return finder.found();
}

interface Span {
  readonly from: number;
  readonly to: number;
}

interface MemberFinder extends TopLevel {
  found(): Span | undefined;
  /** Its text, without white space around it. */
  member(): string | undefined;
}

function memberFinder(json: string, name: string): MemberFinder {
  const key = JSON.stringify(name);
  let found: Span | undefined;
  let from = -1;
  /** The string that was read last, at the top level. */
  let last: string | undefined;
  return {
    text: (at, end) => {
      last = json.slice(at, Math.min(end, at + 4 * key.length + 8));
    },
    mark: (at) => {
      if (json[at] === ":") {
        if (from < 0 && isKey(last, key, name)) from = at + 1;
        return;
      }
      if (from >= 0) found = { from, to: at };
      from = -1;
    },
    found: () => found,
    member: () => found && json.slice(found.from, found.to).trim(),
  };
}

/** The texts of a JSON array's items. `json` must be valid; it is an array from its first character on. */
export function rawItemTexts(json: string): readonly string[] {
  const cutter = itemCutter(json);
  scanTopLevel(json, cutter);
  return cutter.items;
}

/** The same in steps. */
export function* rawItemTextsSteps(json: string): Steps<readonly string[]> {
  const cutter = itemCutter(json);
  yield* scanned(json, cutter);
  return cutter.items;
}

function itemCutter(json: string): TopLevel & { readonly items: string[] } {
  const items: string[] = [];
  let from = 1;
  return {
    items,
    text: () => {},
    mark: (at) => {
      const item = json.slice(from, at).trim();
      if (item !== "") items.push(item); // only an empty array has an empty one
      from = at + 1;
    },
  };
}

/** The texts of the items of a member that is an array; none where there is no such member. `json` must be valid. */
export function* rawMemberItemsSteps(json: string, name: string): Steps<readonly string[]> {
  const list = yield* rawMemberTextSteps(json, name);
  return list === undefined ? [] : yield* rawItemTextsSteps(list);
}

/** The same as `asModelsWrite` in steps, where it is long. */
export function* asModelsWriteSteps(text: string): Steps<string> {
  if (text.length <= PIECE_TEXT) return asModelsWrite(text);
  try {
    return yield* jsonSteps(yield* losslessSteps(text), PLAIN);
  } catch (error) {
    throw tooMuch(error);
  }
}

/**
 * A JSON value in the spelling that models are trained on, Python's `json.dumps`: clients print what a model wrote in a spelling of their
 * own, and send that back. Numbers and the order of keys stay. `text` must be valid JSON. Throws InvalidRequestError for what nests too deep.
 */
export function asModelsWrite(text: string): string {
  refill(); // what is written is charged as in a render, of which there is none here
  try {
    return json(parseLossless(text));
  } catch (error) {
    throw tooMuch(error);
  }
}

const tooMuch = (error: unknown): unknown =>
  error instanceof TemplateLimitError
    ? new InvalidRequestError("The arguments of a call nest too deep, or are too large", { cause: error })
    : error;

interface TopLevel {
  /** A string of the outermost object or array. */
  text(at: number, end: number): void;
  /** A comma or colon of it, or its end. */
  mark(at: number): void;
}

/** How far a scan is. */
interface Place {
  at: number;
  depth: number;
}

function* scanned(json: string, found: TopLevel): Steps<void> {
  for (const place = { at: 0, depth: 0 }; ; ) {
    scanTopLevel(json, found, place, place.at + PIECE_TEXT);
    if (place.at >= json.length) return;
    yield;
  }
}

/** Looks at the next part of a text, up to `until` or a little behind, and leaves in `place` where it stopped. */
function scanTopLevel(json: string, found: TopLevel, place: Place = { at: 0, depth: 0 }, until = json.length): void {
  let { at, depth } = place;
  for (; at < json.length && at < until; at++) {
    const c = json.charCodeAt(at);
    if (c === QUOTE) {
      const behind = endOfString(json, at);
      if (depth === 1) found.text(at, behind);
      at = behind - 1;
    } else if (c === OPEN_LIST || c === OPEN_OBJECT) depth++;
    else if (c === CLOSE_LIST || c === CLOSE_OBJECT) {
      if (--depth === 0) found.mark(at);
    } else if (depth === 1 && (c === COMMA || c === COLON)) found.mark(at);
  }
  place.at = at;
  place.depth = depth;
}

function isKey(text: string | undefined, key: string, name: string): boolean {
  if (text === undefined || text === key) return text !== undefined;
  if (!text.includes("\\") || !text.endsWith('"')) return false;
  try {
    return JSON.parse(text) === name;
  } catch {
    return false;
  }
}
