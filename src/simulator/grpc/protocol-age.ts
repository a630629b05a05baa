import type { ProtoField, ProtoText } from "../../protobuf/proto-text.ts";
import { WireReader } from "../../protobuf/reader.ts";
import { WireWriter } from "../../protobuf/writer.ts";

/** Releases of the protocol that an engine can speak: the oldest in the field, and the newest. */
export type ProtocolAge = "0.4.14" | "0.4.28";

/** Whether something is in a release; `since` is absent for what always was. */
export function isIn(age: ProtocolAge, since: string | undefined): boolean {
  if (since === undefined) return true;
  const [a, b] = [since, age].map((version) => version.split(".").map(Number));
  for (const [i, part] of a!.entries()) if (part !== b![i]) return part < b![i]!;
  return true;
}

/** Makes messages what they are to a peer of some age: without the fields that it doesn't know. */
export class AgeFilter {
  private readonly affected = new Map<string, boolean>();

  constructor(
    private readonly proto: ProtoText,
    private readonly age: ProtocolAge,
  ) {}

  /** The message, or a shorter copy; names of what was left out are added to `dropped`. Throws WireError. */
  strip(message: string, bytes: Uint8Array, dropped?: Set<string>): Uint8Array {
    if (!this.affects(message)) return bytes;
    const { fields } = this.proto.message(message);
    const reader = new WireReader(bytes);
    const pieces: Uint8Array[] = [];
    let kept = 0;
    const keepUntil = (end: number): void => {
      pieces.push(bytes.subarray(kept, end));
    };
    let start = reader.at;
    while (reader.next()) {
      const field = fields.get(reader.field);
      if (field !== undefined && !isIn(this.age, field.since)) {
        keepUntil(start);
        reader.skip();
        dropped?.add(field.name);
        kept = reader.at;
      } else if (field !== undefined && isPlainMessage(field)) {
        const inner = reader.block();
        const left = this.strip(field.type, inner, dropped);
        if (left !== inner) {
          keepUntil(start);
          const writer = new WireWriter();
          writer.message(field.number, left);
          pieces.push(writer.written());
          kept = reader.at;
        }
      } else reader.skip();
      start = reader.at;
    }
    if (pieces.length === 0) return bytes;
    keepUntil(bytes.length);
    return Buffer.concat(pieces);
  }

  /** Whether a message, or one inside it, has fields that this age lacks. */
  private affects(message: string): boolean {
    const known = this.affected.get(message);
    if (known !== undefined) return known;
    this.affected.set(message, false);
    const fields = [...this.proto.message(message).fields.values()];
    const found = fields.some(
      (field) => !isIn(this.age, field.since) || (isPlainMessage(field) && this.affects(field.type)),
    );
    this.affected.set(message, found);
    return found;
  }
}

function isPlainMessage({ kind, label, type }: ProtoField): boolean {
  return kind === "message" && label !== "map" && !type.startsWith("google.protobuf.");
}
