/**
 * Reads `.proto` texts: names, numbers, types and ages of messages have their one home there. A few messages are needed at every
 * start, and reading all of a text takes longer than the rest of the start; so a message's lines are read when it is first used.
 * The texts are our own: one declaration a line, blocks closed by a brace of their own line.
 */
import { WireError } from "./wire-error.ts";

export type FieldLabel = "singular" | "optional" | "repeated" | "map";

export interface ProtoField {
  readonly name: string;
  readonly number: number;
  /** A scalar, or the full name of a message or enum; of maps the type of the values. */
  readonly type: string;
  readonly kind: "scalar" | "message" | "enum";
  readonly label: FieldLabel;
  /** Of maps. */
  readonly keyType?: string;
  readonly oneof?: string;
  /** Release of the protocol that brought it, as its comment says; absent: in all that we speak. */
  readonly since?: string;
}

export interface ProtoMessage {
  /** With the package. */
  readonly fullName: string;
  /** In the text's order. */
  readonly fields: ReadonlyMap<number, ProtoField>;
  readonly since?: string;
}

export interface ProtoRpc {
  readonly name: string;
  /** Full names. */
  readonly request: string;
  readonly response: string;
  readonly serverStream: boolean;
  readonly since?: string;
}

const SCALARS = new Set(["bool", "int32", "uint32", "int64", "uint64", "float", "double", "string", "bytes"]);
const SINCE = /\/\/ since (\d+(?:\.\d+)*)/;
const FIELD = /^\s+(optional |repeated )?(?:map<(\w+), ([\w.]+)>|([\w.]+)) (\w+) = (\d+);/;
const RPC = /^\s+rpc (\w+)\(([\w.]+)\) returns \((stream )?([\w.]+)\);/;
const VALUE = /^\s+(\w+) = (\d+);/;

const sinceOf = (line: string): { since?: string } => {
  const since = SINCE.exec(line)?.[1];
  return since === undefined ? {} : { since };
};

/** One `.proto` text, with those that it imports. */
export class ProtoText {
  readonly packageName: string;
  private readonly messages = new Map<string, ProtoMessage>();
  private readonly enums = new Map<string, ReadonlyMap<number, string>>();

  constructor(
    private readonly text: string,
    private readonly imports: readonly ProtoText[] = [],
  ) {
    this.packageName = /^package ([\w.]+);/m.exec(text)?.[1] ?? "";
  }

  /** Names of its own messages, without the package. */
  messageNames(): string[] {
    return [...this.text.matchAll(/^message (\w+) \{/gm)].map(([, name]) => name!);
  }

  /** A message of this or an imported text, by its name in the package or its full name. Throws WireError. */
  message(name: string): ProtoMessage {
    const known = this.messages.get(name);
    if (known !== undefined) return known;
    const owner = this.ownerOf(name);
    const message = owner === this ? this.readMessage(this.local(name)) : owner.message(name);
    this.messages.set(name, message);
    return message;
  }

  /** Names of an enum's values by number. Throws WireError. */
  enumValues(fullName: string): ReadonlyMap<number, string> {
    const owner = this.ownerOf(fullName);
    if (owner !== this) return owner.enumValues(fullName);
    let values = this.enums.get(fullName);
    if (values === undefined) {
      values = this.readEnum(this.local(fullName));
      this.enums.set(fullName, values);
    }
    return values;
  }

  /** Its own enums outside messages, by full name. */
  ownEnums(): { readonly fullName: string; readonly since?: string }[] {
    const heads = this.text.matchAll(/^enum (\w+) \{.*$/gm);
    return [...heads].map(([line, name]) => ({ fullName: `${this.packageName}.${name}`, ...sinceOf(line) }));
  }

  get hasService(): boolean {
    return /^service /m.test(this.text);
  }

  /** The one service of the text: its full name and its calls. Throws WireError where there is none. */
  service(): { readonly fullName: string; readonly rpcs: readonly ProtoRpc[] } {
    const name = /^service (\w+) \{/m.exec(this.text)?.[1];
    if (name === undefined) throw new WireError(`${this.packageName} has no service`);
    const rpcs: ProtoRpc[] = [];
    for (const line of this.block(`service ${name} {`)) {
      const found = RPC.exec(line);
      if (found === null) continue;
      const [, rpc, request, stream, response] = found;
      rpcs.push({
        name: rpc!,
        request: this.fullName(request!),
        response: this.fullName(response!),
        serverStream: stream !== undefined,
        ...sinceOf(line),
      });
    }
    return { fullName: `${this.packageName}.${name}`, rpcs };
  }

  private fullName(type: string): string {
    return type.includes(".") ? type : `${this.packageName}.${type}`;
  }

  private local(name: string): string {
    return name.startsWith(`${this.packageName}.`) ? name.slice(this.packageName.length + 1) : name;
  }

  private ownerOf(name: string): ProtoText {
    return this.imports.find((text) => name.startsWith(`${text.packageName}.`)) ?? this;
  }

  /** Lines of a block at the start of a line, its first one included; it ends with the first brace at the start of a line. */
  private block(head: string): string[] {
    const start = this.text.indexOf(`\n${head}`);
    if (start < 0) throw new WireError(`there is no ${head.slice(0, -2)}`);
    const end = this.text.startsWith(`${head}}`, start + 1) ? start + 1 : this.text.indexOf("\n}", start);
    return this.text.slice(start + 1, end).split("\n");
  }

  private readMessage(name: string): ProtoMessage {
    const fields = new Map<number, ProtoField>();
    const lines = this.block(`message ${name} {`);
    let oneof: string | undefined;
    for (const line of lines) {
      const opened = /^ {2}oneof (\w+) \{/.exec(line);
      if (opened !== null) oneof = opened[1]!;
      else if (line === "  }") oneof = undefined;
      const found = FIELD.exec(line);
      if (found === null) continue;
      const [, label, keyType, valueType, plain, field, number] = found;
      fields.set(Number(number), {
        name: field!,
        number: Number(number),
        ...this.typeOf(valueType ?? plain!, name),
        label: keyType !== undefined ? "map" : ((label?.trim() ?? "singular") as FieldLabel),
        ...(keyType !== undefined && { keyType }),
        ...(oneof !== undefined && { oneof }),
        ...sinceOf(line),
      });
    }
    return { fullName: `${this.packageName}.${name}`, fields, ...sinceOf(lines[0] ?? "") };
  }

  private typeOf(type: string, scope: string): Pick<ProtoField, "type" | "kind"> {
    if (SCALARS.has(type)) return { type, kind: "scalar" };
    if (type.startsWith("google.protobuf.")) return { type, kind: "message" };
    const owner = this.ownerOf(type);
    const local = owner.local(type);
    if (owner === this && this.text.includes(`\nmessage ${scope} {\n  enum ${local} {`))
      return { type: `${this.packageName}.${scope}.${local}`, kind: "enum" };
    const isEnum = owner.text.includes(`\nenum ${local} {`);
    return { type: `${owner.packageName}.${local}`, kind: isEnum ? "enum" : "message" };
  }

  private readEnum(name: string): ReadonlyMap<number, string> {
    const [outer, inner] = name.split(".");
    let lines = this.block(inner === undefined ? `enum ${outer} {` : `message ${outer} {`);
    if (inner !== undefined) {
      const start = lines.indexOf(`  enum ${inner} {`);
      lines = lines.slice(start + 1, lines.indexOf("  }", start));
    }
    const values = new Map<number, string>();
    for (const line of lines) {
      const found = VALUE.exec(line);
      if (found !== null) values.set(Number(found[2]), found[1]!);
    }
    return values;
  }
}
