/** Parts of a request whose numbers and key order must survive, as prompts print them: read from the request's own text. */
import { type JsonValue, parseLossless } from "../template/lossless-json.ts";

const QUOTE = 34;
const COMMA = 44;
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
export function rawMember(json: string, name: string): JsonValue | undefined {
  const key = JSON.stringify(name);
  let depth = 0;
  let from = -1;
  let found: string | undefined;
  /** The string that was read last, at the top level. */
  let last: string | undefined;
  const end = (at: number) => {
    if (from >= 0) found = json.slice(from, at);
    from = -1;
  };
  for (let at = 0; at < json.length; ) {
    const c = json.charCodeAt(at);
    if (c === QUOTE) {
      const behind = endOfString(json, at);
      if (depth === 1) last = json.slice(at, Math.min(behind, at + 4 * key.length + 8));
      at = behind;
      continue;
    }
    if (c === OPEN_LIST || c === OPEN_OBJECT) depth++;
    else if (c === CLOSE_LIST || c === CLOSE_OBJECT) {
      if (--depth === 0) end(at);
    } else if (depth === 1) {
      if (c === COMMA) end(at);
      else if (json[at] === ":" && from < 0 && isKey(last, key, name)) from = at + 1;
    }
    at++;
  }
  return found === undefined ? undefined : parseLossless(found);
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
