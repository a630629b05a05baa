import { writeSync } from "node:fs";
import { inspect } from "node:util";

export type LogLevel = "debug" | "info" | "warn" | "error";

/** Details of a message, e.g. `{ worker: "grpc://10.0.0.5:50051", error }`. */
export type LogFields = Readonly<Record<string, unknown>>;

/** Writes one line per message. No method ever throws. */
export interface Logger {
  readonly debug: (message: string, fields?: LogFields) => void;
  readonly info: (message: string, fields?: LogFields) => void;
  readonly warn: (message: string, fields?: LogFields) => void;
  readonly error: (message: string, fields?: LogFields) => void;
}

export interface LogOptions {
  /** Least important level that is written. */
  readonly level: LogLevel;
  /** One JSON object a line, else `TIME LEVEL message key=value`. */
  readonly json: boolean;
  /** Put on every line, e.g. `{ thread: 2 }`. */
  readonly fields?: LogFields;
  /** Takes a line with its line end; stderr when absent. */
  readonly write?: (line: string) => void;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

const levels: readonly LogLevel[] = ["debug", "info", "warn", "error"];
const reserved = new Set(["time", "level", "message"]);

/** Straight to the descriptor: a stream would hold lines in memory without limit when nobody reads them. */
function writeToStderr(line: string): void {
  writeSync(2, line);
}

function errorText(error: Error): string {
  const cause = error.cause instanceof Error ? ` (because of ${error.cause.name}: ${error.cause.message})` : "";
  return `${error.name}: ${error.message}${cause}`;
}

/** A field as JSON can hold it. */
function plain(value: unknown): unknown {
  if (value instanceof Error) return errorText(value);
  if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  if (value === null || typeof value !== "object") return typeof value === "function" ? "[function]" : value;
  try {
    return JSON.parse(JSON.stringify(value, (_, inner) => (inner === value ? inner : plain(inner))));
  } catch {
    return inspect(value, { depth: 1, breakLength: Number.POSITIVE_INFINITY });
  }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: a control character could forge a line or move the cursor
const controls = /[\x00-\x1f\x7f-\x9f\u2028\u2029]/g;
const oneLine = (text: string) =>
  text.replace(controls, (c) =>
    JSON.stringify(c)
      .slice(1, -1)
      .replace(/^[\x7f-\x9f]$/, "?"),
  );

function textValue(value: unknown): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? String(value));
  return /^[^\s"=\\]+$/.test(text) && oneLine(text) === text ? text : oneLine(JSON.stringify(text));
}

/** Makes a logger. The methods of levels that are off do nothing. */
export function createLogger({
  level,
  json,
  fields: always,
  write = writeToStderr,
  now = Date.now,
}: LogOptions): Logger {
  const least = levels.indexOf(level);
  let dropped = 0;

  function line(name: LogLevel, message: string, fields: LogFields): string {
    const time = new Date(now()).toISOString();
    const entries: [string, unknown][] = [];
    for (const [key, value] of Object.entries(fields)) {
      if (value === undefined) continue;
      entries.push([key, plain(value)]);
      if (least === 0 && value instanceof Error && value.stack !== undefined)
        entries.push([`${key}_stack`, value.stack]);
    }
    if (!json) {
      const text = entries
        .map(([key, value]) => ` ${oneLine(key).replace(/[\s="]/g, "_")}=${textValue(value)}`)
        .join("");
      return `${time} ${name.toUpperCase().padEnd(5)} ${oneLine(message)}${text}\n`;
    }
    const record: Record<string, unknown> = { time, level: name, message };
    for (const [key, value] of entries) record[reserved.has(key) ? `${key}_` : key] = value;
    return `${JSON.stringify(record)}\n`;
  }

  function log(name: LogLevel, message: string, fields: LogFields | undefined): void {
    try {
      const lost = dropped > 0 ? { dropped_lines: dropped } : undefined;
      write(line(name, message, { ...always, ...fields, ...lost }));
      dropped = 0;
    } catch {
      // The reader is gone or too slow, or a field's getter threw: the line is lost, the request must not be.
      dropped++;
    }
  }

  const method = (name: LogLevel): Logger["info"] =>
    levels.indexOf(name) < least ? () => {} : (message, fields) => log(name, message, fields);
  return { debug: method("debug"), info: method("info"), warn: method("warn"), error: method("error") };
}
