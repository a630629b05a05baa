/** What a worker reports of its load, on the fleet board. Control alone writes it; readers never see half of one. */
import { type BoardCells, Column, epochOf, headOf, Row, since, tenths } from "./board-layout.ts";

/** Sums over the ranks of a worker. `undefined` = it does not tell. */
export interface ReportedLoad {
  readonly running: number;
  readonly waiting: number;
  /** Tokens of waiting prompts that no cache holds. */
  readonly waitingTokens: number | undefined;
  readonly usedTokens: number | undefined;
  /** Tokens that its KV cache holds at most. */
  readonly capacityTokens: number | undefined;
  /** Share of the KV cache in use, 0 to 1; kept to a thousandth. */
  readonly tokenUsage: number | undefined;
  /** Tokens per second; kept to the token. */
  readonly throughput: number | undefined;
}

/** Odd while it is being written. */
const SEQUENCE = Row.load;
const EPOCH = Row.load + 1;
const AT = Row.load + 2;
const FIELDS = Row.load + 3;
const RUNNING = FIELDS;
const WAITING = FIELDS + 1;
const WAITING_TOKENS = FIELDS + 2;
const USED = FIELDS + 3;
const CAPACITY = FIELDS + 4;
const USAGE = FIELDS + 5;
const THROUGHPUT = FIELDS + 6;

const ABSENT = -1;
const MOST = 2 ** 31 - 1;
const kept = (value: number | undefined): number =>
  value === undefined || !(value >= 0) ? ABSENT : Math.min(Math.round(value), MOST);
const told = (cell: number): number | undefined => (cell === ABSENT ? undefined : cell);

export function writeLoad(board: BoardCells, slot: number, load: ReportedLoad, now: number): void {
  if (!board.isCurrent(slot)) return;
  const at = board.head(slot);
  const sequence = board.load(at + SEQUENCE);
  board.store(at + SEQUENCE, sequence + 1);
  board.store(at + EPOCH, epochOf(slot));
  board.store(at + AT, tenths(now));
  board.store(at + RUNNING, kept(load.running));
  board.store(at + WAITING, kept(load.waiting));
  board.store(at + WAITING_TOKENS, kept(load.waitingTokens));
  board.store(at + USED, kept(load.usedTokens));
  board.store(at + CAPACITY, kept(load.capacityTokens));
  board.store(at + USAGE, kept(load.tokenUsage === undefined ? undefined : load.tokenUsage * 1000));
  board.store(at + THROUGHPUT, kept(load.throughput));
  board.store(at + SEQUENCE, (sequence + 2) | 0);
}

/** The newest record and its age in milliseconds; undefined: none was written for this worker. */
export function readLoad(
  board: BoardCells,
  slot: number,
  now: number,
): { readonly load: ReportedLoad; readonly ageMs: number } | undefined {
  const at = board.head(slot);
  for (;;) {
    const sequence = board.load(at + SEQUENCE);
    const time = board.load(at + AT);
    const isOurs = time !== 0 && board.load(at + EPOCH) === epochOf(slot);
    const usage = told(board.load(at + USAGE));
    const load: ReportedLoad = {
      running: Math.max(0, board.load(at + RUNNING)),
      waiting: Math.max(0, board.load(at + WAITING)),
      waitingTokens: told(board.load(at + WAITING_TOKENS)),
      usedTokens: told(board.load(at + USED)),
      capacityTokens: told(board.load(at + CAPACITY)),
      tokenUsage: usage === undefined ? undefined : usage / 1000,
      throughput: told(board.load(at + THROUGHPUT)),
    };
    if ((sequence & 1) === 1 || board.load(at + SEQUENCE) !== sequence) continue; // it takes a microsecond
    return isOurs ? { load, ageMs: Math.max(0, since(time, now)) } : undefined;
  }
}

/** Numbers of the newest record, each without a look at the others: undefined where it is not told, or is older than `maxAgeMs`. */
export const readWaitingTokens = (board: BoardCells, slot: number, now: number, maxAgeMs: number): number | undefined =>
  readCell(board, slot, WAITING_TOKENS, now, maxAgeMs);

export const readThroughput = (board: BoardCells, slot: number, now: number, maxAgeMs: number): number | undefined =>
  readCell(board, slot, THROUGHPUT, now, maxAgeMs);

export function readUsage(board: BoardCells, slot: number, now: number, maxAgeMs: number): number | undefined {
  const usage = readCell(board, slot, USAGE, now, maxAgeMs);
  return usage === undefined ? undefined : usage / 1000;
}

/** What choices weigh. */
export interface WorkFigures {
  running: number;
  /** Tokens of prompts that wait: of all threads, or as told if that is more. */
  queuedTokens: number;
  /** -1 where it is not told, or is older. */
  kvUsage: number;
}

/**
 * The sums of all threads, and the same as `readWaitingTokens` and `readUsage`, at one go: a choice asks for them of all workers, and
 * function by function that is three times as dear.
 */
export function readFigures(
  { cells, threads, rowSize }: BoardCells,
  slot: number,
  now: number,
  maxAgeMs: { readonly queue: number; readonly usage: number },
  into: WorkFigures,
): void {
  const head = headOf(slot, rowSize);
  const epoch = epochOf(slot);
  let running = 0;
  let queued = 0;
  for (let at = head + Row.SIZE, left = threads; left > 0; left--, at += Column.SIZE) {
    if (cells[at + Column.epoch] !== epoch) continue;
    running += cells[at + Column.running]!;
    queued += cells[at + Column.queuedTokens]!;
  }
  let usage = ABSENT;
  const time = cells[head + AT]!;
  if (time !== 0 && cells[head + EPOCH] === epoch) {
    const age = since(time, now);
    const waiting = cells[head + WAITING_TOKENS]!;
    if (waiting > queued && age <= maxAgeMs.queue) queued = waiting;
    if (age <= maxAgeMs.usage) usage = cells[head + USAGE]!;
  }
  into.running = running;
  into.queuedTokens = queued;
  into.kvUsage = usage === ABSENT ? ABSENT : usage / 1000;
}

function readCell(board: BoardCells, slot: number, field: number, now: number, maxAgeMs: number): number | undefined {
  const at = board.head(slot);
  const value = board.peek(at + field);
  if (value === ABSENT) return undefined;
  const time = board.peek(at + AT);
  return time !== 0 && board.peek(at + EPOCH) === epochOf(slot) && since(time, now) <= maxAgeMs ? value : undefined;
}
