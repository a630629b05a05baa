/**
 * Messages of the control calls, coded from our `.proto` texts: names, numbers and types have their one home there. A few of the
 * messages are needed at every start, and a general library takes longer to load and to read all of the text than the rest of
 * the start; so a message's own lines are read when it is first used. Token messages have codecs of their own.
 */
import commonText from "../../proto/common.proto" with { type: "text" };
import { WireReader } from "../protobuf/reader.ts";
import { WireError, WireType } from "../protobuf/wire-error.ts";
import { WireWriter } from "../protobuf/writer.ts";

/** A decoded message with every field present: proto3 defaults for what was absent, and undefined for messages. */
export type PlainMessage = Readonly<Record<string, unknown>>;

export interface ProtoPackage {
  /** Bytes of a message; `message` is its name in the package, or a full name. Strings, numbers, booleans and lists of strings. */
  encode(message: string, value: Readonly<Record<string, unknown>>): Uint8Array;
  /** Throws WireError for bytes that are not the message. */
  decode(message: string, bytes: Uint8Array): PlainMessage;
}

interface Field {
  readonly name: string;
  readonly number: number;
  readonly type: string;
  readonly repeated: boolean;
}

type Message = ReadonlyMap<number, Field>;

const COMMON_PACKAGE = "smg.grpc.common";
const FIELD = /^\s*(optional |repeated )?([\w.]+) (\w+) = (\d+);/;
const VARINTS = new Set(["bool", "int32", "uint32", "int64", "uint64"]);

/** The fields of one message of a proto text, oneof members among them; maps are left out. */
function readMessage(text: string, name: string): Message {
  const start = text.indexOf(`\nmessage ${name} {`);
  if (start < 0) throw new WireError(`there is no message ${name}`);
  const fields = new Map<number, Field>();
  // An empty message closes on its own line; others with the first brace at the start of a line.
  for (const line of text.slice(start + 1).split("\n")) {
    if (line.startsWith("}") || /^message \w+ \{ *\}/.test(line)) break;
    const found = FIELD.exec(line);
    if (found === null) continue;
    const [, label, type, field, number] = found;
    fields.set(Number(number), { name: field!, number: Number(number), type: type!, repeated: label === "repeated " });
  }
  return fields;
}

/** One dialect's messages. The dialects use the same message names with other numbers, so each has a package of its own. */
export function protoPackage(packageName: string, text: string): ProtoPackage {
  const messages = new Map<string, Message>();

  /** A message by the name that a field of the package, or a caller, uses. */
  function find(name: string): Message {
    let message = messages.get(name);
    if (message === undefined) {
      const common = name.startsWith(`${COMMON_PACKAGE}.`);
      const local = common ? name.slice(COMMON_PACKAGE.length + 1) : name.replace(`${packageName}.`, "");
      message = readMessage(common ? commonText : text, local);
      messages.set(name, message);
    }
    return message;
  }

  function decodeAs(message: Message, bytes: Uint8Array): PlainMessage {
    const value: Record<string, unknown> = {};
    for (const field of message.values()) value[field.name] = field.repeated ? [] : defaultOf(field.type);
    const reader = new WireReader();
    reader.reset(bytes);
    while (reader.at < reader.end) {
      const tag = reader.varint();
      const wireType = tag & 7;
      const field = message.get(tag >>> 3);
      if (field === undefined) reader.skip(wireType);
      else if (!field.repeated) value[field.name] = readValue(reader, bytes, field, wireType);
      else if (wireType === WireType.BYTES && isPackable(field.type)) {
        const end = reader.lengthPrefix() + reader.at;
        while (reader.at < end)
          (value[field.name] as unknown[]).push(readValue(reader, bytes, field, scalarWire(field.type)));
      } else (value[field.name] as unknown[]).push(readValue(reader, bytes, field, wireType));
    }
    return value;
  }

  function readValue(reader: WireReader, bytes: Uint8Array, { type, name }: Field, wireType: number): unknown {
    if (wireType !== scalarWire(type)) throw new WireError(`${name} has the wrong wire type`);
    switch (type) {
      case "string":
        return reader.string();
      case "float":
        return reader.float();
      case "double":
        return reader.double();
      case "bool":
        return reader.varint() !== 0;
      case "int32":
        return reader.varint() | 0;
      case "uint32":
        return reader.varint();
      case "int64":
      case "uint64":
        return reader.varint64(type === "int64");
      default: {
        const length = reader.lengthPrefix();
        const inner = bytes.subarray(reader.at, reader.at + length);
        reader.at += length;
        return type === "bytes" ? inner.slice() : decodeAs(find(type), inner);
      }
    }
  }

  return {
    decode: (message, bytes) => decodeAs(find(message), bytes),
    encode(message, value) {
      const writer = new WireWriter();
      for (const field of find(message).values()) {
        const given = value[field.name];
        if (given === undefined) continue;
        for (const item of field.repeated ? (given as readonly unknown[]) : [given]) writeValue(writer, field, item);
      }
      return writer.written();
    },
  };
}

function writeValue(writer: WireWriter, { type, number, name }: Field, value: unknown): void {
  if (type === "string") writer.string(number, value as string);
  else if (type === "bool") writer.bool(number, value as boolean);
  else if (type === "float") writer.float(number, value as number);
  else if (type === "int32" || type === "uint32") writer.int32(number, value as number);
  else throw new WireError(`${name}: ${type} cannot be written`);
}

const isPackable = (type: string): boolean => VARINTS.has(type) || type === "float" || type === "double";

function scalarWire(type: string): number {
  if (VARINTS.has(type)) return WireType.VARINT;
  if (type === "float") return WireType.FIXED32;
  return type === "double" ? WireType.FIXED64 : WireType.BYTES;
}

function defaultOf(type: string): unknown {
  if (type === "string") return "";
  if (type === "bool") return false;
  if (type === "bytes") return new Uint8Array(0);
  return isPackable(type) ? 0 : undefined;
}
