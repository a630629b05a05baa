/** Hashes of large files, and of parts of them, that have not changed since they were read, so that a start need not read them all again. */
import { mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type ContentHash, hashOfFile } from "./content-hash.ts";
import { removeIfThere } from "./table-cache.ts";

const FILE = "file-hashes.json";
/** Raise it when hashes are made in another way. */
const VERSION = 1;
/** Hashes that are kept, those made last. */
const KEPT = 64;
/** A file that changed so shortly before it was read may change again without showing it: clocks of file systems are coarse. */
const SETTLED_MS = 2000;

interface Known {
  /** What changes with every change of the file: see `stampOf`. */
  readonly stamp: string;
  readonly hash: ContentHash;
}

/**
 * Goes by device, inode, size, and the times of the last change of content and of state to the nanosecond, as version control does; the
 * latter nobody can set. What cannot be written is hashed again at the next start.
 */
export class KnownHashes {
  constructor(
    private readonly folder: string,
    private readonly now: () => number = Date.now,
  ) {}

  /** The hash of a file's content. Throws what the system says. */
  of(path: string): ContentHash {
    return this.known(path, path, () => hashOfFile(path));
  }

  /**
   * The hash of what `make` takes from a file, which it reads, and from nothing else; undefined if it does. `part` names what that is, and
   * with it how it is made. Throws what the system and `make` say.
   */
  ofPart<T extends ContentHash | undefined>(path: string, part: string, make: () => T): ContentHash | T {
    return this.known(path, `${path} ${part}`, make);
  }

  private known<T extends ContentHash | undefined>(path: string, name: string, make: () => T): ContentHash | T {
    const before = stampOf(path);
    const known = this.read();
    const old = known.get(name);
    if (old?.stamp === before.stamp) return old.hash;
    const hash = make();
    if (hash !== undefined && this.now() - before.changedMs > SETTLED_MS && stampOf(path).stamp === before.stamp) {
      known.delete(name);
      known.set(name, { stamp: before.stamp, hash });
      this.write(known);
    }
    return hash;
  }

  private read(): Map<string, Known> {
    try {
      const { version, files } = JSON.parse(readFileSync(join(this.folder, FILE), "utf8")) as Stored;
      return new Map(version === VERSION ? Object.entries(files) : []);
    } catch {
      return new Map();
    }
  }

  private write(known: ReadonlyMap<string, Known>): void {
    const temporary = join(this.folder, `${FILE}.${process.pid}.${crypto.randomUUID().slice(0, 8)}`);
    try {
      mkdirSync(this.folder, { recursive: true });
      const files = Object.fromEntries([...known].slice(-KEPT));
      writeFileSync(temporary, JSON.stringify({ version: VERSION, files } satisfies Stored), { mode: 0o600 });
      renameSync(temporary, join(this.folder, FILE));
    } catch {
      removeIfThere(temporary);
    }
  }
}

interface Stored {
  readonly version: number;
  readonly files: Readonly<Record<string, Known>>;
}

function stampOf(path: string): { readonly stamp: string; readonly changedMs: number } {
  const { dev, ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true });
  return { stamp: [dev, ino, size, mtimeNs, ctimeNs].join(" "), changedMs: Number(ctimeNs / 1_000_000n) };
}
