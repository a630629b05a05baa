/** Frame types, flags and error codes of HTTP/2 (RFC 9113). */
export const FrameType = {
  DATA: 0,
  HEADERS: 1,
  PRIORITY: 2,
  RST_STREAM: 3,
  SETTINGS: 4,
  PUSH_PROMISE: 5,
  PING: 6,
  GOAWAY: 7,
  WINDOW_UPDATE: 8,
  CONTINUATION: 9,
} as const;

export const Flag = { END_STREAM: 1, ACK: 1, END_HEADERS: 4, PADDED: 8, PRIORITY: 32 } as const;

export const ErrorCode = {
  NO_ERROR: 0,
  PROTOCOL_ERROR: 1,
  INTERNAL_ERROR: 2,
  FLOW_CONTROL_ERROR: 3,
  SETTINGS_TIMEOUT: 4,
  STREAM_CLOSED: 5,
  FRAME_SIZE_ERROR: 6,
  REFUSED_STREAM: 7,
  CANCEL: 8,
  COMPRESSION_ERROR: 9,
  CONNECT_ERROR: 10,
  ENHANCE_YOUR_CALM: 11,
  INADEQUATE_SECURITY: 12,
} as const;

export const Setting = {
  HEADER_TABLE_SIZE: 1,
  ENABLE_PUSH: 2,
  MAX_CONCURRENT_STREAMS: 3,
  INITIAL_WINDOW_SIZE: 4,
  MAX_FRAME_SIZE: 5,
  MAX_HEADER_LIST_SIZE: 6,
} as const;
const SETTING_BYTES = 6;

export const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");
export const FRAME_HEADER_BYTES = 9;
export const DEFAULT_WINDOW = 65_535;
export const DEFAULT_MAX_FRAME = 16_384;
export const LARGEST_MAX_FRAME = 0xffffff;
export const MAX_WINDOW = 0x7fffffff;

/** A breach of the protocol that ends the connection with this code. */
export class ConnectionError extends Error {
  override readonly name = "ConnectionError";
  constructor(
    readonly code: number,
    message: string,
  ) {
    super(message);
  }
}

/** Big-endian 32-bit number without sign. */
export function readUint32(bytes: Uint8Array, at: number): number {
  return ((bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!) >>> 0;
}

/** Calls `onSetting` for each setting of a SETTINGS frame's payload. Throws ConnectionError for what no peer may set. */
export function readSettings(payload: Uint8Array, onSetting: (key: number, value: number) => void): void {
  if (payload.length % SETTING_BYTES !== 0) throw new ConnectionError(ErrorCode.FRAME_SIZE_ERROR, "SETTINGS length");
  for (let at = 0; at < payload.length; at += SETTING_BYTES) {
    const key = (payload[at]! << 8) | payload[at + 1]!;
    const value = readUint32(payload, at + 2);
    if (key === Setting.INITIAL_WINDOW_SIZE && value > MAX_WINDOW)
      throw new ConnectionError(ErrorCode.FLOW_CONTROL_ERROR, "window too large");
    if (key === Setting.MAX_FRAME_SIZE && (value < DEFAULT_MAX_FRAME || value > LARGEST_MAX_FRAME))
      throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, "frame size out of range");
    onSetting(key, value);
  }
}

/** Increment of a WINDOW_UPDATE frame's payload. Throws ConnectionError. */
export function readIncrement(payload: Uint8Array): number {
  if (payload.length !== 4) throw new ConnectionError(ErrorCode.FRAME_SIZE_ERROR, "WINDOW_UPDATE length");
  const increment = readUint32(payload, 0) & MAX_WINDOW;
  if (increment === 0) throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, "window increment 0");
  return increment;
}
