/**
 * What a render may use up. A template comes from a stranger, so everything that takes time or memory is charged here, in units of about
 * 40 ns: a turn of a loop, an item of a list that is made, 32 characters of a text that is copied, 4 that are looked at one by one.
 * Rendering is synchronous, so one budget for the thread is enough.
 */
import { TemplateLimitError, TemplateTextLimitError } from "../errors.ts";

/** Units of work of one render: about a second. 1,000 messages with tools need about 100,000. */
const MAX_WORK = 20_000_000;
/** UTF-16 units of one string, the prompt included. */
export const MAX_TEXT = 1 << 24;
/** Items of a list. */
export const MAX_ITEMS = 1_000_000;
/** Macros, loops and blocks that call each other, and values inside of values. Python gives up at about 200. */
export const MAX_DEPTH = 200;
/** Bits of an integer; Python prints none with more than 4,300 digits (14,284 bits). */
export const MAX_BITS = 1 << 16;

export const budget = { left: 0, depth: 0 };

let isShared = false;

export function refill(): void {
  if (!isShared) budget.left = MAX_WORK;
  budget.depth = 0;
}

/** Share of one render's work that trying out a template may take. Of that, 0.5 % is the most that any of the tested ones needs. */
const TRIAL = 0.1;

/** Runs `inner`, whose renders have a tenth of what one may use up, all of them together. Those beyond it fail with a TemplateLimitError. */
export function onTrial<T>(inner: () => T): T {
  budget.left = MAX_WORK * TRIAL;
  isShared = true;
  try {
    return inner();
  } finally {
    isShared = false;
  }
}

function exhausted(): never {
  throw new TemplateLimitError("the template does too much work");
}

/** Takes `units` from the budget; throws a TemplateLimitError when it is used up. */
export function charge(units: number): void {
  if ((budget.left -= units) < 0) exhausted();
}

/** To be called before a string of `length` units is made. */
export function chargeText(length: number): void {
  if (length > MAX_TEXT)
    throw new TemplateTextLimitError(`the template makes a text of more than ${MAX_TEXT} characters`);
  charge(length >> 5);
}

/** To be called before each character of a text is looked at. */
export function chargeScan(length: number): void {
  charge(length >> 2);
}

/** To be called before a list of `length` items is made. */
export function chargeItems(length: number): void {
  if (length > MAX_ITEMS) throw new TemplateLimitError(`the template makes a list of more than ${MAX_ITEMS} items`);
  charge(length);
}

export function tooDeep(): never {
  throw new TemplateLimitError(`the template nests more than ${MAX_DEPTH} levels deep`);
}

/** Runs `inner` one level deeper. */
export function deeper<T>(inner: () => T): T {
  if (++budget.depth > MAX_DEPTH) tooDeep();
  const result = inner();
  budget.depth--;
  return result;
}
