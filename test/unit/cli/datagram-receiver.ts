import { dlopen, FFIType, ptr } from "bun:ffi";

const AF_UNIX = 1;
const SOCK_DGRAM = 2;
const MSG_DONTWAIT = 0x40;

/** A bound Unix datagram socket, as systemd has one. */
export interface DatagramReceiver {
  /** Takes the waiting datagrams. */
  take(): string[];
  [Symbol.dispose](): void;
}

/** Binds a `sockaddr_un` built here, on its own, from a path or an abstract name (`@name`). Linux with glibc only. */
export function receiveDatagrams(address: string): DatagramReceiver {
  const { symbols: libc } = dlopen("libc.so.6", {
    socket: { args: [FFIType.i32, FFIType.i32, FFIType.i32], returns: FFIType.i32 },
    bind: { args: [FFIType.i32, FFIType.ptr, FFIType.u32], returns: FFIType.i32 },
    recv: { args: [FFIType.i32, FFIType.ptr, FFIType.u64, FFIType.i32], returns: FFIType.i64 },
    close: { args: [FFIType.i32], returns: FFIType.i32 },
  });
  const name = Buffer.from(address.startsWith("@") ? `\0${address.slice(1)}` : `${address}\0`);
  const target = Buffer.concat([Buffer.from([AF_UNIX, 0]), name]);
  const socket = libc.socket(AF_UNIX, SOCK_DGRAM, 0);
  if (libc.bind(socket, ptr(target), target.length) !== 0) throw new Error(`can't bind ${address}`);
  return {
    take() {
      const buffer = Buffer.alloc(4096);
      const texts: string[] = [];
      for (;;) {
        const length = Number(libc.recv(socket, ptr(buffer), buffer.length, MSG_DONTWAIT));
        if (length < 0) return texts;
        texts.push(buffer.toString("utf8", 0, length));
      }
    },
    [Symbol.dispose]: () => void libc.close(socket),
  };
}
