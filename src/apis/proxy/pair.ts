/** Requests that one HTTP worker prefills and another answers: as vLLM's servers do it, and SGLang's. */
import { EngineError } from "../../engines/engine.ts";
import type { Clock } from "../../fleet/clock.ts";
import { meetingPlace, randomRoom } from "../../fleet/dispatch/meeting-place.ts";
import { connectorMode, PairMeter, runtimeNameOf } from "../../fleet/dispatch/pair-meter.ts";
import { relayOf } from "../../fleet/dispatch/relay.ts";
import { awayError } from "../../fleet/dispatch/retries.ts";
import type { HttpLease } from "../../fleet/lease.ts";
import type { FleetView } from "../../fleet/view.ts";
import { rawMemberText, withMember } from "../../generation/raw-members.ts";
import type { Forwarded } from "./forward.ts";
import type { HttpPair } from "./pair-lease.ts";
import { usageOf } from "./usage.ts";

/** One try at one of the workers with a body of its own. */
export type Beginning = (lease: HttpLease, text: string, signal: AbortSignal) => Promise<Forwarded>;

interface Trying {
  readonly pair: HttpPair;
  readonly text: string;
  readonly begin: Beginning;
  readonly fleet: FleetView;
}

/** How long the half that prefills may take to tell of its cache when the answer is over. */
const LAST_WORD_MS = 1000;
/** How long halves that follow each other may go on without a client. */
const GRACE_MS = 250;
/** Rooms of SGLang's: 31 bits. */
const ROOMS = 2n ** 31n - 1n;
/** The answer of a prefill is a token or so. */
const ANSWER_BYTES = 64 << 20;

/** Of a prefill nothing is wanted but the cache: one token, whole, and nothing that could end it earlier. */
const PREFILL_ONLY = { max_tokens: "1", ignore_eos: "true", stream: "false" };
/** The same where the client says something of it. What may change the prompt (tools, and the choice of them) stays. */
const PREFILL_NOT: Readonly<Record<string, string>> = {
  max_completion_tokens: "1",
  min_tokens: "0",
  n: "1",
  best_of: "null",
  use_beam_search: "false",
  stream_options: "null",
  stop: "null",
  stop_token_ids: "null",
  response_format: "null",
  structured_outputs: "null",
  logprobs: "null",
  top_logprobs: "null",
};

/** SGLang's halves work at the same time. */
export const isMeeting = ({ prefill }: HttpPair): boolean => runtimeNameOf(prefill.worker) === "sglang";

/** vLLM's servers do not tell their connector. */
const USUAL = "NixlConnector";

/** Begins the answer of the half that decodes. Rejects as `begin` does, and then the pair's suspect is who has failed. */
export async function beginPair(
  pair: HttpPair,
  text: string,
  begin: Beginning,
  fleet: FleetView,
  signal: AbortSignal,
): Promise<Forwarded> {
  const given = new AbortController();
  const forget = fleet.lost.watch(pair.prefill.worker.slot, () => given.abort(awayError()));
  const either = AbortSignal.any([signal, given.signal]);
  try {
    const begun = await (isMeeting(pair) ? meet : relay)({ pair, text, begin, fleet }, either, given);
    pair.begun();
    return { ...begun, lease: pair };
  } catch (error) {
    if (!given.signal.aborted || signal.aborted) throw error;
    pair.suspect = "prefill";
    throw given.signal.reason;
  } finally {
    forget();
  }
}

/** One after the other: what the first says at its end goes to the second. */
async function relay({ pair, text, begin, fleet }: Trying, signal: AbortSignal): Promise<Forwarded> {
  const { prefill, decode } = pair;
  const n = hasSeveral(text) ? 2 : 1;
  const plan = relayOf(prefill.worker, { n, rank: undefined }, USUAL);
  if (plan.isUseless === true) {
    pair.leaveOutPrefill();
    return begin(decode, text, signal);
  }
  pair.suspect = "prefill";
  fleet.observer.paired(connectorMode(prefill.worker, USUAL));
  const meter = new PairMeter(fleet.observer, fleet.clock, prefill.worker);
  const told = plan.prefill?.kind === "transfer" ? plan.prefill.json : undefined;
  const late = lateSignal(signal, fleet.clock);
  const answer = await wholeOf(await begin(prefill, prefillOnly(text, told), late.signal));
  meter.prefilled();
  count(prefill, answer);
  const handover = plan.decode === "as told" ? rawMemberText(answer, "kv_transfer_params") : jsonOf(plan.decode);
  if (handover === undefined || handover === "null") {
    pair.prefilled();
    meter.alone();
    const begun = await begin(decode, text, signal);
    meter.begun();
    return begun;
  }
  pair.prefilled("neutral"); // what that was worth shows when the other has fetched it
  pair.isMeeting = true;
  const begun = await begin(decode, changed(text, { kv_transfer_params: handover }), late.signal);
  meter.begun();
  fleet.judge(prefill.worker, "ok");
  late.comeDue();
  return begun;
}

/**
 * A signal that fires a little later than `signal` when the client leaves: what is prefilled is kept until the other half has been asked for
 * it, and is let go when that is broken off. Workers that are given up are so at once, and clients that leave after `comeDue`.
 */
function lateSignal(signal: AbortSignal, clock: Clock): { readonly signal: AbortSignal; comeDue(): void } {
  const late = new AbortController();
  let isDue = false;
  const comeDue = () => {
    isDue = true;
    if (signal.aborted) late.abort(signal.reason);
  };
  const onAbort = () => {
    if (isDue || signal.reason instanceof EngineError) late.abort(signal.reason);
    else clock.after(GRACE_MS, comeDue);
  };
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort, { once: true });
  return { signal: late.signal, comeDue };
}

const jsonOf = (handover: ReturnType<typeof relayOf>["decode"]): string | undefined =>
  typeof handover === "object" && handover.kind === "transfer" ? handover.json : undefined;

/** Both at once: they meet in a room. What the first answers is read for its counts only. */
async function meet(
  { pair, text, begin, fleet }: Trying,
  signal: AbortSignal,
  given: AbortController,
): Promise<Forwarded> {
  const { prefill, decode } = pair;
  const { host, port } = meetingPlace(prefill.worker);
  const room = String(randomRoom(prefill.worker, ROOMS));
  const meeting = { bootstrap_host: JSON.stringify(host), bootstrap_port: String(port), bootstrap_room: room };
  const asked = changed(text, meeting);
  const end = new AbortController();
  const meter = new PairMeter(fleet.observer, fleet.clock, prefill.worker);
  let hasBegun = false;
  pair.suspect = undefined; // until one of them says something
  pair.isMeeting = true;
  const whole = changed(asked, {
    stream: "false",
    ...(hasMember(asked, "stream_options") && { stream_options: "null" }),
  });
  const prefilling = begin(prefill, whole, AbortSignal.any([signal, end.signal]))
    .then(wholeOf)
    .then((answer) => {
      count(prefill, answer);
      meter.prefilled();
      pair.isMeeting = false;
      if (!hasBegun) pair.prefilled();
    })
    .catch((error: unknown) => {
      if (!hasBegun && !end.signal.aborted) given.abort(error); // the other would wait for it
    });
  const leave = () => end.abort(new EngineError("cancelled", "cancelled"));
  try {
    const begun = await begin(decode, asked, signal);
    hasBegun = true;
    meter.begun();
    const cancel = () => {
      begun.cancel();
      leave();
    };
    let isEnding = false;
    const read = async () => {
      const chunk = await begun.read();
      if (chunk === undefined && !isEnding) {
        isEnding = true;
        const forget = fleet.clock.after(LAST_WORD_MS, leave);
        void prefilling.then(forget);
      }
      return chunk;
    };
    return { ...begun, read, cancel };
  } catch (error) {
    if (!signal.aborted) pair.suspect = "decode";
    leave();
    await prefilling;
    throw error;
  }
}

async function wholeOf({ first, read, cancel }: Forwarded): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for (let chunk = first; chunk !== undefined; chunk = await read()) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes <= ANSWER_BYTES) continue;
    cancel();
    throw new EngineError("failed", `the engine's answer is larger than ${ANSWER_BYTES} bytes`);
  }
  return Buffer.concat(chunks).toString();
}

function count(lease: HttpLease, answer: string): void {
  const usage = usageOf(Buffer.from(answer));
  if (usage?.cachedTokens !== undefined) lease.cached(usage.cachedTokens, usage.promptTokens);
}

/** What is handed over has one taker. */
function hasSeveral(text: string): boolean {
  const prompt = rawMemberText(text, "prompt");
  const isMany = (name: string) => Number(rawMemberText(text, name) ?? 1) > 1;
  const isBeam = hasMember(text, "use_beam_search") && rawMemberText(text, "use_beam_search") === "true";
  return isMany("n") || isMany("best_of") || isBeam || (prompt !== undefined && /^\[\s*["[]/.test(prompt));
}

function prefillOnly(text: string, told: string | undefined): string {
  const said = Object.entries(PREFILL_NOT).filter(([name]) => hasMember(text, name));
  return changed(text, {
    ...PREFILL_ONLY,
    ...Object.fromEntries(said),
    ...(told !== undefined && { kv_transfer_params: told }),
  });
}

/** Letters of a name may be spelled by their numbers. */
const SPELLED = /\\u00[4-7]/;

/** It need not be a member of the body itself: that is found out where it is to be changed. */
const isIn = (text: string, name: string): boolean => text.includes(`"${name}"`) || SPELLED.test(text);

const hasMember = (text: string, name: string): boolean => isIn(text, name) && rawMemberText(text, name) !== undefined;

/** With members that have these values, whether they were there or not. A body is never empty: it names a model. */
function changed(text: string, members: Readonly<Record<string, string>>): string {
  let body = text;
  let added = "";
  for (const [name, value] of Object.entries(members)) {
    if (hasMember(body, name)) body = withMember(body, name, value);
    else added += `"${name}":${value},`;
  }
  return body.replace("{", () => `{${added}`);
}
