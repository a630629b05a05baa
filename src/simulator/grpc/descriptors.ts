/** Descriptors of proto files, as server reflection gives them: google/protobuf/descriptor.proto. */
import { type ProtoField, type ProtoMessage, ProtoText } from "../../protobuf/proto-text.ts";
import { WireWriter } from "../../protobuf/writer.ts";
import { isIn, type ProtocolAge } from "./protocol-age.ts";

/** A proto file by the name under which others import it. */
export interface ProtoFile {
  readonly name: string;
  readonly text: ProtoText;
  readonly imports: readonly ProtoFile[];
}

/** FieldDescriptorProto.Type */
const TYPES: Readonly<Record<string, number>> = {
  double: 1,
  float: 2,
  int64: 3,
  uint64: 4,
  int32: 5,
  bool: 8,
  string: 9,
  message: 11,
  bytes: 12,
  uint32: 13,
  enum: 14,
};
/** FieldDescriptorProto.Label */
const OPTIONAL = 1;
const REPEATED = 3;

/** Google's own files, as far as the dialects use them. */
const STRUCT = `syntax = "proto3";

package google.protobuf;

message Struct {
  map<string, Value> fields = 1;
}

message Value {
  oneof kind {
    NullValue null_value = 1;
    double number_value = 2;
    string string_value = 3;
    bool bool_value = 4;
    Struct struct_value = 5;
    ListValue list_value = 6;
  }
}

enum NullValue {
  NULL_VALUE = 0;
}

message ListValue {
  repeated Value values = 1;
}
`;
const TIMESTAMP = `syntax = "proto3";

package google.protobuf;

message Timestamp {
  int64 seconds = 1;
  int32 nanos = 2;
}
`;

export const structFile: ProtoFile = { name: "google/protobuf/struct.proto", text: new ProtoText(STRUCT), imports: [] };
export const timestampFile: ProtoFile = {
  name: "google/protobuf/timestamp.proto",
  text: new ProtoText(TIMESTAMP),
  imports: [],
};

/** FileDescriptorProto of a file as it was in a release. */
export function fileDescriptor(file: ProtoFile, age: ProtocolAge): Uint8Array {
  const { text } = file;
  const w = new WireWriter();
  w.string(1, file.name);
  w.string(2, text.packageName);
  for (const { name } of file.imports) w.string(3, name);
  for (const name of text.messageNames()) {
    const message = text.message(name);
    if (!isIn(age, message.since)) continue;
    const mark = w.begin(4);
    writeMessage(w, text, message, age);
    w.end(mark);
  }
  for (const { fullName, since } of text.ownEnums()) {
    if (!isIn(age, since)) continue;
    const mark = w.begin(5);
    writeEnum(w, text, fullName);
    w.end(mark);
  }
  if (text.hasService) {
    const mark = w.begin(6);
    writeService(w, text, age);
    w.end(mark);
  }
  w.string(12, "proto3");
  return w.written().slice();
}

/** A file and all that it needs, itself first. */
export function withImports(file: ProtoFile): readonly ProtoFile[] {
  return [...new Set([file, ...file.imports.flatMap(withImports)])];
}

/** Whether a file declares a symbol: its service or a call of it, a message, an enum. */
export function declares({ text }: ProtoFile, symbol: string): boolean {
  if (!symbol.startsWith(`${text.packageName}.`)) return false;
  const local = symbol.slice(text.packageName.length + 1);
  if (text.messageNames().includes(local.split(".")[0]!)) return true;
  if (text.ownEnums().some(({ fullName }) => fullName === symbol)) return true;
  if (!text.hasService) return false;
  const { fullName, rpcs } = text.service();
  return symbol === fullName || rpcs.some(({ name }) => symbol === `${fullName}.${name}`);
}

function writeMessage(w: WireWriter, text: ProtoText, { fullName, fields }: ProtoMessage, age: ProtocolAge): void {
  w.string(1, lastName(fullName));
  const present = [...fields.values()].filter(({ since }) => isIn(age, since));
  const oneofs = [...new Set(present.flatMap(({ oneof }) => oneof ?? []))];
  // An optional field is the only member of a oneof of its own; those come behind the written ones.
  const synthetic = present.filter(({ label }) => label === "optional").map(({ name }) => `_${name}`);
  const places = [...oneofs, ...synthetic];
  for (const field of present) {
    const mark = w.begin(2);
    writeField(w, field, fullName, places);
    w.end(mark);
  }
  for (const field of present) {
    if (field.label === "map") {
      const mark = w.begin(3);
      writeMapEntry(w, field);
      w.end(mark);
    } else if (field.kind === "enum" && parentOf(field.type) === fullName) {
      const mark = w.begin(4);
      writeEnum(w, text, field.type);
      w.end(mark);
    }
  }
  for (const name of places) {
    const mark = w.begin(8);
    w.string(1, name);
    w.end(mark);
  }
}

function writeField(w: WireWriter, field: ProtoField, owner: string, oneofs: readonly string[]): void {
  const { name, number, label, oneof } = field;
  w.string(1, name);
  w.uint32(3, number);
  w.uint32(4, label === "repeated" || label === "map" ? REPEATED : OPTIONAL);
  if (label === "map") {
    w.uint32(5, TYPES["message"]!);
    w.string(6, `.${owner}.${entryName(name)}`);
  } else writeType(w, field);
  const place = oneof ?? (label === "optional" ? `_${name}` : undefined);
  if (place !== undefined) w.uint32(9, oneofs.indexOf(place));
  if (label === "optional") w.bool(17, true);
}

function writeType(w: WireWriter, { kind, type }: Pick<ProtoField, "kind" | "type">): void {
  w.uint32(5, TYPES[kind === "scalar" ? type : kind]!);
  if (kind !== "scalar") w.string(6, `.${type}`);
}

function writeMapEntry(w: WireWriter, { name, keyType, kind, type }: ProtoField): void {
  w.string(1, entryName(name));
  const sides = [
    { side: "key", number: 1, kind: "scalar", type: keyType! },
    { side: "value", number: 2, kind, type },
  ] as const;
  for (const { side, number, ...typed } of sides) {
    const mark = w.begin(2);
    w.string(1, side);
    w.uint32(3, number);
    w.uint32(4, OPTIONAL);
    writeType(w, typed);
    w.end(mark);
  }
  const options = w.begin(7);
  w.bool(7, true);
  w.end(options);
}

function writeEnum(w: WireWriter, text: ProtoText, fullName: string): void {
  w.string(1, lastName(fullName));
  for (const [number, name] of text.enumValues(fullName)) {
    const mark = w.begin(2);
    w.string(1, name);
    w.uint32(2, number);
    w.end(mark);
  }
}

function writeService(w: WireWriter, text: ProtoText, age: ProtocolAge): void {
  const { fullName, rpcs } = text.service();
  w.string(1, lastName(fullName));
  for (const { name, request, response, serverStream, since } of rpcs) {
    if (!isIn(age, since)) continue;
    const mark = w.begin(2);
    w.string(1, name);
    w.string(2, `.${request}`);
    w.string(3, `.${response}`);
    if (serverStream) w.bool(6, true);
    w.end(mark);
  }
}

const lastName = (fullName: string): string => fullName.slice(fullName.lastIndexOf(".") + 1);
const parentOf = (fullName: string): string => fullName.slice(0, fullName.lastIndexOf("."));
const entryName = (field: string): string =>
  `${field
    .split("_")
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join("")}Entry`;
