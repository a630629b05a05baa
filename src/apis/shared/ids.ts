/** Ids of what the APIs hand out. */
import { randomBytes } from "node:crypto";

export type IdPrefix =
  | "resp_"
  | "msg_"
  | "rs_"
  | "fc_"
  | "ctc_"
  | "cmp_"
  | "item_"
  | "steer_"
  | "conv_"
  | "call_"
  | "toolu_"
  | "msgbatch_"
  | "int_"
  | "cmpl-"
  | "gnt-"
  | "embed-"
  | "classify-"
  | "rerank-";

const TIME_DIGITS = 12;
const POOL_BYTES = 19 * 128;

let pool = "";
let at = 0;

/** 38 digits of hexadecimal entropy; one call for entropy serves many ids. */
function random(): string {
  if (at === pool.length) {
    pool = randomBytes(POOL_BYTES).toString("hex");
    at = 0;
  }
  at += 38;
  return pool.slice(at - 38, at);
}

/**
 * A new id: the prefix, the time in milliseconds (12 hexadecimal digits, so that ids sort by their age) and 152 random bits. It cannot be
 * guessed, and a client has no say in it.
 */
export const newId = (prefix: IdPrefix): string =>
  prefix + Date.now().toString(16).padStart(TIME_DIGITS, "0") + random();
