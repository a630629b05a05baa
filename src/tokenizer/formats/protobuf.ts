/** Reading protobuf messages as far as the formats of tokenizers need it. */
import { WireReader } from "../../protobuf/reader.ts";
import { WireType } from "../../protobuf/wire-error.ts";
import { TokenizerError } from "../tokenizer.ts";

/** One field of a message. */
export interface Field {
  readonly number: number;
  /** 32-bit numbers with sign, and floats. */
  readonly value: number;
  /** Texts and messages. */
  readonly bytes: Uint8Array;
}

const NONE = new Uint8Array(0);

/** The fields of a message in their order. Throws `TokenizerError` that `name` is broken if it is none or ends early. */
export function* fieldsOf(name: string, message: Uint8Array): Generator<Field> {
  const reader = new WireReader(message);
  for (;;) {
    let field: Field;
    try {
      if (!reader.next()) return;
      field = read(reader);
    } catch (cause) {
      const place = `byte ${reader.at} of ${message.length}`;
      throw new TokenizerError(`${name} is broken: no protobuf message at ${place}`, { cause });
    }
    yield field;
  }
}

function read(reader: WireReader): Field {
  const { field: number, wireType } = reader;
  if (wireType === WireType.BYTES) return { number, value: 0, bytes: reader.block() };
  if (wireType === WireType.VARINT) return { number, value: reader.int32(), bytes: NONE };
  if (wireType === WireType.FIXED32) return { number, value: reader.float(), bytes: NONE };
  if (wireType === WireType.FIXED64) return { number, value: reader.double(), bytes: NONE };
  reader.skip();
  return { number, value: 0, bytes: NONE };
}
