/** Messages coded by their `.proto` text, for the calls where speed does not matter: token messages have codecs of their own. */
import type { ProtoField, ProtoMessage, ProtoText } from "./proto-text.ts";
import { WireReader } from "./reader.ts";
import { type JsonObject, readStruct, readTimestamp, writeStruct, writeTimestamp } from "./well-known.ts";
import { WireError, WireType } from "./wire-error.ts";
import { WireWriter } from "./writer.ts";

/**
 * A message with every field that its text has: defaults for what was absent, but undefined for messages, members of oneofs and
 * `optional` fields. Enums are their values' names (or numbers, if unknown), 64-bit integers numbers, maps Maps, Structs plain
 * objects, Timestamps seconds since the epoch.
 */
export type PlainMessage = Readonly<Record<string, unknown>>;

export interface ProtoCodec {
  /** `message` is its name in the package, or a full name. What is given is written, also where it is the default. */
  encode(message: string, value: PlainMessage): Uint8Array;
  /** Throws WireError for bytes that are not the message. */
  decode(message: string, bytes: Uint8Array): PlainMessage;
}

const STRUCT = "google.protobuf.Struct";
const TIMESTAMP = "google.protobuf.Timestamp";
const WIRE_TYPES: Readonly<Record<string, number>> = {
  bool: WireType.VARINT,
  int32: WireType.VARINT,
  uint32: WireType.VARINT,
  int64: WireType.VARINT,
  uint64: WireType.VARINT,
  float: WireType.FIXED32,
  double: WireType.FIXED64,
  string: WireType.BYTES,
  bytes: WireType.BYTES,
};

function wireTypeOf({ kind, type }: ProtoField): number {
  if (kind === "message") return WireType.BYTES;
  return kind === "enum" ? WireType.VARINT : WIRE_TYPES[type]!;
}

export function protoCodec(text: ProtoText): ProtoCodec {
  function absent({ label, kind, type, oneof }: ProtoField): unknown {
    if (label === "map") return new Map();
    if (label === "repeated") return [];
    if (label === "optional" || oneof !== undefined || kind === "message") return undefined;
    if (kind === "enum") return text.enumValues(type).get(0);
    if (type === "string") return "";
    if (type === "bool") return false;
    return type === "bytes" ? new Uint8Array(0) : 0;
  }

  function decodeAs(message: ProtoMessage, reader: WireReader): PlainMessage {
    const value: Record<string, unknown> = {};
    for (const field of message.fields.values()) value[field.name] = absent(field);
    while (reader.next()) {
      const field = message.fields.get(reader.field);
      if (field === undefined) reader.skip();
      else if (field.label === "map") readEntry(reader, field, value[field.name] as Map<unknown, unknown>);
      else if (field.label === "repeated") readItems(reader, field, value[field.name] as unknown[]);
      else {
        const read = readValue(reader, field);
        if (field.oneof !== undefined)
          for (const other of message.fields.values()) if (other.oneof === field.oneof) value[other.name] = undefined;
        value[field.name] = read;
      }
    }
    return value;
  }

  function readItems(reader: WireReader, field: ProtoField, into: unknown[]): void {
    const wireType = wireTypeOf(field);
    if (reader.wireType !== WireType.BYTES || wireType === WireType.BYTES) {
      into.push(readValue(reader, field));
      return;
    }
    const packed = reader.message();
    packed.wireType = wireType;
    while (packed.at < packed.end) into.push(readValue(packed, field));
  }

  function readEntry(reader: WireReader, field: ProtoField, into: Map<unknown, unknown>): void {
    const entry = reader.message();
    const keyField: ProtoField = { ...field, type: field.keyType!, kind: "scalar", label: "singular" };
    const valueField: ProtoField = { ...field, label: "singular" };
    let key = absent(keyField);
    let value = absent(valueField);
    while (entry.next()) {
      if (entry.field === 1) key = readValue(entry, keyField);
      else if (entry.field === 2) value = readValue(entry, valueField);
      else entry.skip();
    }
    into.set(key, value);
  }

  function readValue(reader: WireReader, field: ProtoField): unknown {
    const { type, kind } = field;
    if (reader.wireType !== wireTypeOf(field)) throw new WireError(`${field.name} has the wrong wire type`);
    if (kind === "enum") {
      const number = reader.int32();
      return text.enumValues(type).get(number) ?? number;
    }
    switch (type) {
      case "string":
        return reader.string();
      case "bytes":
        return reader.block().slice();
      case "float":
        return reader.float();
      case "double":
        return reader.double();
      case "bool":
        return reader.bool();
      case "int32":
        return reader.int32();
      case "uint32":
        return reader.varint();
      case "int64":
      case "uint64":
        return reader.varint64(type === "int64");
      case STRUCT:
        return readStruct(reader.block());
      case TIMESTAMP:
        return readTimestamp(reader.block());
      default:
        return decodeAs(text.message(type), reader.message());
    }
  }

  function encodeAs(message: ProtoMessage, writer: WireWriter, value: PlainMessage): void {
    for (const field of message.fields.values()) {
      const given = value[field.name];
      if (given === undefined) continue;
      if (field.label === "map") {
        for (const [key, item] of given as ReadonlyMap<unknown, unknown>) {
          const mark = writer.begin(field.number);
          writeValue(writer, { ...field, number: 1, type: field.keyType!, kind: "scalar" }, key);
          writeValue(writer, { ...field, number: 2 }, item);
          writer.end(mark);
        }
      } else if (field.label === "repeated") writeItems(writer, field, given as readonly unknown[]);
      else writeValue(writer, field, given);
    }
  }

  function writeItems(writer: WireWriter, field: ProtoField, items: readonly unknown[]): void {
    const { type, number } = field;
    if (type === "uint32") writer.packedUint32(number, items as readonly number[]);
    else if (type === "float") writer.packedFloats(number, items as readonly number[]);
    else if (type === "int32" && items.length > 0) {
      const mark = writer.begin(number);
      for (const item of items as readonly number[]) writer.varint64(BigInt(item));
      writer.end(mark);
    } else for (const item of items) writeValue(writer, field, item);
  }

  function writeValue(writer: WireWriter, { type, kind, number }: ProtoField, value: unknown): void {
    if (kind === "enum") {
      writer.int32(number, typeof value === "number" ? value : enumNumber(text.enumValues(type), String(value)));
      return;
    }
    switch (type) {
      case "string":
        writer.string(number, value as string);
        break;
      case "bytes":
        writer.message(number, value as Uint8Array);
        break;
      case "float":
        writer.float(number, value as number);
        break;
      case "double":
        writer.double(number, value as number);
        break;
      case "bool":
        writer.bool(number, value as boolean);
        break;
      case "int32":
      case "uint32":
        writer.int32(number, value as number);
        break;
      case "int64":
      case "uint64":
        writer.int64(number, BigInt(value as number | bigint));
        break;
      default: {
        const mark = writer.begin(number);
        if (type === STRUCT) writeStruct(writer, value as JsonObject);
        else if (type === TIMESTAMP) writeTimestamp(writer, value as number);
        else encodeAs(text.message(type), writer, value as PlainMessage);
        writer.end(mark);
      }
    }
  }

  return {
    decode: (message, bytes) => decodeAs(text.message(message), new WireReader(bytes)),
    encode(message, value) {
      const writer = new WireWriter();
      encodeAs(text.message(message), writer, value);
      return writer.written();
    },
  };
}

function enumNumber(values: ReadonlyMap<number, string>, name: string): number {
  for (const [number, known] of values) if (known === name) return number;
  throw new WireError(`there is no value ${name}`);
}
