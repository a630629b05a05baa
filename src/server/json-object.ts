/** JSON from outside, as what the schemas are checked on. */
import { BadJsonError } from "../errors.ts";

/** Deeper JSON than this is refused: nothing that a client API means nests so far, and recursive code must not meet it. */
export const MAX_DEPTH = 256;

/** A text as a JSON object, however deep. `what` begins the messages of errors. Throws BadJsonError. */
export function parseObject(text: string, what: string): object {
  if (text.trim() === "") throw new BadJsonError(`${what} is empty: a JSON object is needed`);
  const value = parseText(text, what);
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new BadJsonError(`${what} must be a JSON object`);
  return value;
}

/** The value of a JSON text. `what` begins the messages of errors. Throws BadJsonError. */
export function parseText(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new BadJsonError(`${what} is not valid JSON: ${(error as Error).message.replace(/^JSON Parse error: /, "")}`);
  }
}

/**
 * Throws BadJsonError for a value that nests beyond reason. `what` begins its message. Its objects are then safe to print: one with a
 * member `toString` would throw a TypeError.
 */
export function refuseDepth(value: object, what: string): void {
  if (deeperThan(value, MAX_DEPTH)) throw new BadJsonError(`${what} nests deeper than ${MAX_DEPTH} levels`);
}

/** Whether a JSON value nests deeper than `limit`, without recursion; objects that hide `toString` get another way to be printed. */
function deeperThan(value: unknown, limit: number): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth >= limit) return true;
    const next: unknown[] = [];
    for (const item of level) {
      if (typeof item !== "object" || item === null) continue;
      makePrintable(item);
      for (const child of Array.isArray(item) ? item : Object.values(item)) {
        if (typeof child === "object" && child !== null) next.push(child);
      }
    }
    level = next;
  }
  return false;
}

/** Gives an object that hides `toString` another way to be printed. */
export function makePrintable(object: object): void {
  if (Object.hasOwn(object, "toString"))
    Object.defineProperty(object, Symbol.toPrimitive, { value: () => "an object" });
}
