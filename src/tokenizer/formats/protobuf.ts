/** Reading protobuf messages as far as the formats of tokenizers need it. */
import { TokenizerError } from "../tokenizer.ts";

/** One field of a message. */
export interface Field {
  readonly number: number;
  /** Varints (as whole numbers; negative 32-bit ones too) and 32-bit floats. */
  readonly value: number;
  /** Texts and messages. */
  readonly bytes: Uint8Array;
}

const NONE = new Uint8Array(0);

/** The fields of a message in their order. Throws `TokenizerError` that `name` is broken if it is none or ends early. */
export function* fieldsOf(name: string, message: Uint8Array): Generator<Field> {
  const view = new DataView(message.buffer, message.byteOffset, message.byteLength);
  let at = 0;
  function broken(): TokenizerError {
    return new TokenizerError(`${name} is broken: no protobuf message at byte ${at} of ${message.length}`);
  }
  function varint(): number {
    let low = 0;
    let high = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = message[at++];
      if (byte === undefined) break;
      if (shift < 28) low += (byte & 127) * 2 ** shift;
      else high += (byte & 127) * 2 ** (shift - 28);
      // numbers above 2^63 are negative ones, of which 32 bits count
      if (byte < 128) return high >= 2 ** 35 ? (low + (high % 16) * 2 ** 28) | 0 : low + high * 2 ** 28;
    }
    throw broken();
  }
  while (at < message.length) {
    const key = varint();
    const number = Math.floor(key / 8);
    const room = message.length - at;
    if (number === 0) throw broken();
    switch (key % 8) {
      case 0:
        yield { number, value: varint(), bytes: NONE };
        break;
      case 1:
        if (room < 8) throw broken();
        at += 8;
        yield { number, value: view.getFloat64(at - 8, true), bytes: NONE };
        break;
      case 2: {
        const length = varint();
        if (length < 0 || length > message.length - at) throw broken();
        at += length;
        yield { number, value: 0, bytes: message.subarray(at - length, at) };
        break;
      }
      case 5:
        if (room < 4) throw broken();
        at += 4;
        yield { number, value: view.getFloat32(at - 4, true), bytes: NONE };
        break;
      default:
        throw broken();
    }
  }
}
