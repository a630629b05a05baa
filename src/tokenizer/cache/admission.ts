import type { CacheBoard } from "./board.ts";
import type { Hash } from "./hash.ts";

/**
 * Is a text stored? While texts come again, all are. Else it is only noted, by a hash of what it begins with or of all of it, as storing
 * takes a tenth of the encoding; it is stored if it was noted before.
 */
export function isWorthIt(board: CacheBoard, mark: Hash): boolean {
  if (board.spend()) return true;
  const cameAgain = board.knows(mark);
  if (cameAgain) board.earn();
  else board.note(mark);
  return cameAgain;
}
