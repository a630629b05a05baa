import { FFIType, ptr } from "bun:ffi";
import { cLibrary } from "../c-library.ts";

const AF_UNIX = 1;
const SOCK_DGRAM = 2;
const SOCK_CLOEXEC = 0o2000000;
const MSG_DONTWAIT = 0x40;
const MSG_NOSIGNAL = 0x4000;

const openLibrary = () =>
  cLibrary({
    socket: { args: [FFIType.i32, FFIType.i32, FFIType.i32], returns: FFIType.i32 },
    sendto: {
      args: [FFIType.i32, FFIType.ptr, FFIType.u64, FFIType.i32, FFIType.ptr, FFIType.u32],
      returns: FFIType.i64,
    },
    close: { args: [FFIType.i32], returns: FFIType.i32 },
  });
let library: ReturnType<typeof openLibrary>;

/**
 * A Linux `sockaddr_un` for a path, or for a name in the abstract namespace when it starts with `@` (unix(7)).
 * Undefined when the address is of another family or too long.
 */
export function unixAddress(address: string): Uint8Array | undefined {
  if (!/^[/@]./.test(address)) return undefined;
  const name = new TextEncoder().encode(address);
  const abstract = address.startsWith("@");
  // 108 bytes of path; a file's path ends with a zero byte, an abstract name begins with one.
  if (name.length > (abstract ? 108 : 107)) return undefined;
  const bytes = new Uint8Array(2 + name.length + (abstract ? 0 : 1));
  new DataView(bytes.buffer).setUint16(0, AF_UNIX, true);
  bytes.set(name, 2);
  if (abstract) bytes[2] = 0;
  return bytes;
}

/**
 * Sends one datagram to a Unix socket. node:dgram has no such sockets, so this calls the C library. Never throws.
 * @param wait whether to wait while the receiver's queue is full
 * @returns what went wrong, or undefined
 */
export function sendDatagram(address: string, text: string, wait: boolean): string | undefined {
  if (process.platform !== "linux") return "only Linux is supported";
  const target = unixAddress(address);
  if (target === undefined) return `${JSON.stringify(address)} is not a usable Unix socket`;
  try {
    library ??= openLibrary();
    if (library === undefined) return "no C library was found";
    const socket = library.socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (socket < 0) return "no socket could be made";
    const payload = new TextEncoder().encode(text);
    const flags = MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT);
    const sent = library.sendto(socket, ptr(payload), payload.length, flags, ptr(target), target.length);
    library.close(socket);
    return Number(sent) === payload.length ? undefined : `nothing listens at ${address}, or its queue is full`;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
