/**
 * Named arrays and a JSON value in one block of shared memory:
 *   u32 magic, u32 version, u32 bytes of the whole, u32 bytes of the directory, directory, arrays
 * (little endian). The directory is JSON: the value, and for each array its name, kind, place and length; arrays lie on multiples of 8.
 */
import { TokenizerError } from "../tokenizer.ts";

const MAGIC = 0x4e_45_47_43;
/** To be raised whenever the arrays, or what is made of the JSON, change. */
export const GENERAL_VERSION = 1;
const HEADER = 16;

const KINDS = { u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, i32: Int32Array, f64: Float64Array } as const;
type Kind = keyof typeof KINDS;
export type Table = Uint8Array | Uint16Array | Uint32Array | Int32Array | Float64Array;

interface Entry {
  readonly kind: Kind;
  readonly at: number;
  readonly length: number;
}

export interface Block {
  readonly value: unknown;
  readonly tables: ReadonlyMap<string, Table>;
}

export function packBlock(value: unknown, tables: ReadonlyMap<string, Table>): SharedArrayBuffer {
  const entries: Record<string, Entry> = {};
  let at = 0;
  for (const [name, table] of tables) {
    entries[name] = { kind: kindOf(table), at, length: table.length };
    at += (table.byteLength + 7) & ~7;
  }
  const directory = Buffer.from(JSON.stringify({ value, entries }));
  const start = (HEADER + directory.length + 7) & ~7;
  const memory = new SharedArrayBuffer(start + at);
  new Uint32Array(memory, 0, 4).set([MAGIC, GENERAL_VERSION, memory.byteLength, directory.length]);
  new Uint8Array(memory, HEADER).set(directory);
  for (const [name, table] of tables) {
    new Uint8Array(memory, start + entries[name]!.at, table.byteLength).set(
      new Uint8Array(table.buffer, table.byteOffset, table.byteLength),
    );
  }
  return memory;
}

const kindOf = (table: Table): Kind => (Object.keys(KINDS) as Kind[]).find((kind) => table instanceof KINDS[kind])!;

const view = (kind: Kind, memory: SharedArrayBuffer, at: number, length: number): Table =>
  new (KINDS[kind] as new (buffer: SharedArrayBuffer, at: number, length: number) => Table)(memory, at, length);

/** Opens a block; the arrays are views. Throws `TokenizerError` if it is none of this version. */
export function openBlock(memory: SharedArrayBuffer): Block {
  const damaged = new TokenizerError("the tables of the tokenizer are damaged or of another version");
  if (memory.byteLength < HEADER) throw damaged;
  const [magic, version, size, length] = new Uint32Array(memory, 0, 4);
  if (magic !== MAGIC || version !== GENERAL_VERSION || size !== memory.byteLength || HEADER + length! > size)
    throw damaged;
  const text = new TextDecoder().decode(new Uint8Array(memory, HEADER, length!).slice());
  const { value, entries } = JSON.parse(text) as { value: unknown; entries: Record<string, Entry> };
  const start = (HEADER + length! + 7) & ~7;
  const tables = new Map<string, Table>();
  for (const [name, { kind, at, length }] of Object.entries(entries))
    tables.set(name, view(kind, memory, start + at, length));
  return { value, tables };
}
