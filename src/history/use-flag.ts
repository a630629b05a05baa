/**
 * Whether the history of a process may hold anything, known to all its threads. Until then nobody need look for what is too old or was
 * lost, which would start the thread that holds the store.
 */
export class UseFlag {
  private readonly word: Int32Array;

  constructor(readonly memory: SharedArrayBuffer = new SharedArrayBuffer(4)) {
    this.word = new Int32Array(memory);
  }

  get isSet(): boolean {
    return Atomics.load(this.word, 0) === 1;
  }

  set(): void {
    Atomics.store(this.word, 0, 1);
  }
}
