/** Google's Struct and Timestamp as plain values: https://protobuf.dev/reference/protobuf/google.protobuf */
import { WireReader } from "./reader.ts";
import { WireError } from "./wire-error.ts";
import type { WireWriter } from "./writer.ts";

export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: JsonValue;
}

/** Deeper ones are an attack on the stack, not launch arguments. */
const MAX_DEPTH = 64;

export function readStruct(bytes: Uint8Array, depth = 0): JsonObject {
  if (depth > MAX_DEPTH) throw new WireError("a struct is nested too deeply");
  const object: Record<string, JsonValue> = Object.create(null) as Record<string, JsonValue>;
  const reader = new WireReader(bytes);
  while (reader.next()) {
    if (reader.field !== 1) {
      reader.skip();
      continue;
    }
    const entry = reader.message();
    let key = "";
    let value: JsonValue = null;
    while (entry.next()) {
      if (entry.field === 1) key = entry.string();
      else if (entry.field === 2) value = readValue(entry.block(), depth);
      else entry.skip();
    }
    object[key] = value;
  }
  return object;
}

function readValue(bytes: Uint8Array, depth: number): JsonValue {
  const reader = new WireReader(bytes);
  let value: JsonValue = null;
  while (reader.next()) {
    if (reader.field === 2) value = reader.double();
    else if (reader.field === 3) value = reader.string();
    else if (reader.field === 4) value = reader.bool();
    else if (reader.field === 5) value = readStruct(reader.block(), depth + 1);
    else if (reader.field === 6) value = readList(reader.block(), depth + 1);
    else reader.skip();
  }
  return value;
}

function readList(bytes: Uint8Array, depth: number): readonly JsonValue[] {
  if (depth > MAX_DEPTH) throw new WireError("a struct is nested too deeply");
  const list: JsonValue[] = [];
  const reader = new WireReader(bytes);
  while (reader.next()) {
    if (reader.field === 1) list.push(readValue(reader.block(), depth));
    else reader.skip();
  }
  return list;
}

/** Writes the members of a Struct, not the tag and length of its field. */
export function writeStruct(writer: WireWriter, object: JsonObject): void {
  for (const [key, value] of Object.entries(object)) {
    const entry = writer.begin(1);
    writer.string(1, key);
    const mark = writer.begin(2);
    writeValue(writer, value);
    writer.end(mark);
    writer.end(entry);
  }
}

function writeValue(writer: WireWriter, value: JsonValue): void {
  if (value === null) writer.uint32(1, 0);
  else if (typeof value === "number") writer.double(2, value);
  else if (typeof value === "string") writer.string(3, value);
  else if (typeof value === "boolean") writer.bool(4, value);
  else {
    const mark = writer.begin(isList(value) ? 6 : 5);
    if (isList(value)) {
      for (const item of value) {
        const inner = writer.begin(1);
        writeValue(writer, item);
        writer.end(inner);
      }
    } else writeStruct(writer, value);
    writer.end(mark);
  }
}

const isList = (value: readonly JsonValue[] | JsonObject): value is readonly JsonValue[] => Array.isArray(value);

/** Seconds since the epoch, with fractions. */
export function readTimestamp(bytes: Uint8Array): number {
  const reader = new WireReader(bytes);
  let seconds = 0;
  while (reader.next()) {
    if (reader.field === 1) seconds += reader.varint64(true);
    else if (reader.field === 2) seconds += reader.int32() / 1e9;
    else reader.skip();
  }
  return seconds;
}

export function writeTimestamp(writer: WireWriter, seconds: number): void {
  const whole = Math.floor(seconds);
  writer.int64(1, BigInt(whole));
  writer.int32(2, Math.round((seconds - whole) * 1e9));
}
