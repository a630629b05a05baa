import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type ContentHash, hashOfBytes, hashOfFile } from "./content-hash.ts";
import type { KnownHashes } from "./known-hashes.ts";
import { TokenizerError } from "./tokenizer.ts";

/** A model's files by name, relative to its folder. */
export type Files = ReadonlyMap<string, Uint8Array>;

/**
 * Files of a folder, of which the large ones are read when somebody asks for their bytes: where their tables are built already, nobody
 * does. To send them to another thread, copy them into a Map. `get` and whatever gives bytes throw `TokenizerError` if a file can't be
 * read.
 */
export class FolderFiles implements Files {
  /** Undefined: not read yet. */
  private readonly read = new Map<string, Uint8Array | undefined>();

  /** Of files that are not read: absent, they are hashed whenever that is asked. */
  known: KnownHashes | undefined;

  constructor(private readonly folder: string) {}

  /** A file of the folder; without bytes it is read later. */
  add(name: string, bytes?: Uint8Array): void {
    this.read.set(name, bytes);
  }

  get(name: string): Uint8Array | undefined {
    if (!this.read.has(name)) return undefined;
    let bytes = this.read.get(name);
    if (bytes === undefined) {
      bytes = this.tried(name, (path) => readFileSync(path));
      this.read.set(name, bytes);
    }
    return bytes;
  }

  /** Hash of a file's content, for which it need not be kept. */
  hash(name: string): ContentHash {
    const bytes = this.read.get(name);
    if (bytes !== undefined) return hashOfBytes(bytes);
    return this.tried(name, (path) => this.known?.of(path) ?? hashOfFile(path));
  }

  /** Hash of what `make` takes from a large file that was not read yet, see `KnownHashes`; undefined: it has to be made. */
  hashOfPart(name: string, part: string, make: () => ContentHash | undefined): ContentHash | undefined {
    const { known } = this;
    if (known === undefined || !this.read.has(name) || this.read.get(name) !== undefined) return undefined;
    return this.tried(name, (path) => known.ofPart(path, part, make));
  }

  private tried<T>(name: string, run: (path: string) => T): T {
    const path = join(this.folder, name);
    try {
      return run(path);
    } catch (error) {
      throw unreadable(path, error);
    }
  }

  get size(): number {
    return this.read.size;
  }
  has(name: string): boolean {
    return this.read.has(name);
  }
  keys(): MapIterator<string> {
    return this.read.keys();
  }
  *entries(): MapIterator<[string, Uint8Array]> {
    for (const name of this.read.keys()) yield [name, this.get(name)!];
  }
  *values(): MapIterator<Uint8Array> {
    for (const [, bytes] of this.entries()) yield bytes;
  }
  [Symbol.iterator](): MapIterator<[string, Uint8Array]> {
    return this.entries();
  }
  forEach(visit: (bytes: Uint8Array, name: string, files: Files) => void): void {
    for (const [name, bytes] of this.entries()) visit(bytes, name, this);
  }
}

/** Hash of the content of one of the files. */
export const contentHash = (files: Files, name: string): ContentHash =>
  files instanceof FolderFiles ? files.hash(name) : hashOfBytes(files.get(name)!);

export const reason = (error: unknown): string => (error instanceof Error ? error.message : String(error));

export const unreadable = (path: string, error: unknown): TokenizerError =>
  new TokenizerError(`${path} can't be read: ${reason(error)}`);
