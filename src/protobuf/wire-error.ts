/** Bytes that are not the message they should be. */
export class WireError extends Error {
  override readonly name = "WireError";
}

/** Wire types of protobuf. */
export const WireType = { VARINT: 0, FIXED64: 1, BYTES: 2, FIXED32: 5 } as const;
