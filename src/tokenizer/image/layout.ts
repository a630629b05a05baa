import { IMAGE_AT, imageMemory, instantiate, type Kernel, kernelModule } from "../kernel/kernel.ts";
import { HEADER_WORDS, IMAGE_VERSION, MAGIC, Word, type WordName } from "./header.ts";

/** Tables are placed on borders of this many bytes (a cache line). */
const ALIGN = 64;

/** An image under construction: sections first, then `open` gives memory to fill. */
export class ImageLayout {
  private size = HEADER_WORDS * 4;
  private readonly words = new Map<number, number>();

  /** Reserves `bytes` for a table and names its offset in the header. */
  place(name: WordName, bytes: number): void {
    this.words.set(Word[name], this.size);
    this.size = (this.size + bytes + ALIGN - 1) & ~(ALIGN - 1);
  }
  /** Sets a header word that is no offset. */
  set(name: WordName, value: number): void {
    this.words.set(Word[name], value);
  }
  /** Zeroed memory of the image's size with the header in place, and a kernel that has read it. */
  open(): ImageUnderWork {
    this.set("magic", MAGIC);
    this.set("version", IMAGE_VERSION);
    this.set("size", this.size);
    const memory = imageMemory(this.size);
    const words = new Uint32Array(memory.buffer, IMAGE_AT, this.size >> 2);
    for (const [at, value] of this.words) words[at] = value;
    const kernel = instantiate(kernelModule(), memory);
    const bytes = new Uint8Array(memory.buffer, IMAGE_AT, this.size);
    const offset = (name: WordName): number => this.words.get(Word[name]) ?? 0;
    const init = (): void => kernel.init(IMAGE_AT, IMAGE_AT + this.size, 1, 0);
    return { memory, kernel, bytes, words, offset, init };
  }
}

export interface ImageUnderWork {
  readonly memory: WebAssembly.Memory;
  readonly kernel: Kernel;
  /** The whole image, as bytes and as words. Shared memory is never detached by growing. */
  readonly bytes: Uint8Array;
  readonly words: Uint32Array;
  offset(name: WordName): number;
  /** Must be called after the tables that the kernel reads are filled, before its `insert...` functions. */
  init(): void;
}

/** Smallest power of two that is at least `n`, and at least 2. */
export const powerOfTwo = (n: number): number => 2 ** Math.ceil(Math.log2(Math.max(2, n)));
