import type { Answer, AnswerChoice, LogprobItem, TokenProbability } from "./answer.ts";
import type { EngineCase } from "./cases/row.ts";

/** Largest difference of two logprobs of one token: batches of different size add in another order. */
const TOLERANCE = 0.02;

const show = (value: unknown): string => {
  const text = JSON.stringify(value) ?? "undefined";
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
};

function difference(what: string, theirs: unknown, ours: unknown): string[] {
  return show(theirs) === show(ours) && JSON.stringify(theirs) === JSON.stringify(ours)
    ? []
    : [`${what}: engine ${show(theirs)}, gateway ${show(ours)}`];
}

const near = (a: TokenProbability, b: TokenProbability) => Math.abs(a.logprob - b.logprob) <= TOLERANCE;
/** A token that is a part of a character. */
const isPart = (item: TokenProbability) => item.token.includes("\ufffd") || item.token.startsWith("bytes:");
const sameToken = (a: TokenProbability, b: TokenProbability) =>
  a.token === b.token || isPart(a) || isPart(b) || a.token === "";

/**
 * The alternatives that both must list. Asked for N, OpenAI and the gateway list the N most likely tokens, best first; vLLM lists
 * the sampled token first, which pushes the N-th best out when it is not one of them.
 */
function bestAlternatives(item: LogprobItem): TokenProbability[] {
  const [sampled, ...others] = item.top_logprobs;
  if (sampled === undefined) return [];
  const pushedOut = others.length > 0 && others.every((o) => o.logprob > sampled.logprob);
  const listed = pushedOut ? others : [...item.top_logprobs];
  return listed.sort((a, b) => b.logprob - a.logprob);
}

function logprobDifference(at: number, theirs: LogprobItem, ours: LogprobItem): string[] {
  const found = difference(`logprobs[${at}].top_logprobs.length`, theirs.top_logprobs.length, ours.top_logprobs.length);
  if (!sameToken(theirs, ours)) found.push(...difference(`logprobs[${at}].token`, theirs.token, ours.token));
  if (!near(theirs, ours)) found.push(`logprobs[${at}].logprob: engine ${theirs.logprob}, gateway ${ours.logprob}`);
  if (theirs.top_logprobs.length === 1) return found; // one row: the sampled token there, the best one here
  for (const [k, top] of bestAlternatives(theirs).entries()) {
    const mine = ours.top_logprobs[k];
    if (mine === undefined) continue;
    // Neighbours that are as good as equal may change places.
    const good = near(top, mine) && ours.top_logprobs.some((o) => sameToken(top, o) && near(o, top));
    if (!good) found.push(`logprobs[${at}].top_logprobs[${k}]: engine ${show(top)}, gateway ${show(mine)}`);
  }
  return found;
}

const allBytes = (items: readonly LogprobItem[] | undefined) => items?.flatMap((item) => item.bytes ?? []);

function choiceDifference(at: number, theirs: AnswerChoice, ours: AnswerChoice | undefined): string[] {
  if (ours === undefined) return [`choice ${at} is missing`];
  const found = [
    ...difference("text", theirs.text, ours.text),
    ...difference("finish_reason", theirs.finishReason, ours.finishReason),
    ...difference("stop_reason", theirs.stopReason, ours.stopReason),
    ...difference("token_ids", theirs.tokenIds, ours.tokenIds),
    ...difference("number of logprobs", theirs.logprobs?.length, ours.logprobs?.length),
  ];
  // A part of a character: vLLM shows no bytes for it and all of them with the last part; OpenAI and the gateway show its own.
  found.push(...difference("bytes of all logprobs", allBytes(theirs.logprobs), allBytes(ours.logprobs)));
  for (const [k, item] of (theirs.logprobs ?? []).entries()) {
    const mine = ours.logprobs?.[k];
    if (mine !== undefined) found.push(...logprobDifference(k, item, mine));
  }
  return found.slice(0, 6).map((line) => (at === 0 ? line : `choice ${at}: ${line}`));
}

/** What of two answers to one request differs, a line each; empty = they agree. Words of errors are not compared. */
export function answerDifferences(theirs: Answer, ours: Answer): string[] {
  // vLLM commits to 200 before the engine has accepted a stream; the gateway waits and answers with the true status.
  if (theirs.error !== undefined && theirs.status === 200 && ours.status >= 400) return [];
  if (theirs.status !== ours.status)
    return [
      `status: engine ${theirs.status}${theirs.error ? ` (${theirs.error.slice(0, 200)})` : ""}, ` +
        `gateway ${ours.status}${ours.error ? ` (${ours.error.slice(0, 200)})` : ""}`,
    ];
  return [
    ...difference("number of choices", theirs.choices.length, ours.choices.length),
    ...theirs.choices.flatMap((choice, at) => choiceDifference(at, choice, ours.choices[at])),
    ...difference("usage", theirs.usage, ours.usage),
    ...difference("prompt_token_ids", theirs.promptTokenIds, ours.promptTokenIds),
    ...ours.streamFaults.map((fault) => `stream: ${fault}`),
  ];
}

/** What of an answer contradicts the case's own expectation. */
export function expectationFaults(test: EngineCase, ours: Answer): string[] {
  const found: string[] = [];
  const status = test.expectStatus ?? (test.expectText === undefined ? undefined : 200);
  if (status !== undefined && ours.status !== status)
    found.push(`status ${ours.status} (${ours.error}), expected ${status}`);
  if (test.expectError !== undefined && !test.expectError.test(ours.error ?? ""))
    found.push(`error ${show(ours.error)}, expected ${test.expectError}`);
  if (test.expectText !== undefined && ours.status === 200) {
    for (const choice of ours.choices) {
      const good =
        typeof test.expectText === "string" ? choice.text === test.expectText : test.expectText.test(choice.text);
      if (!good) found.push(`text ${show(choice.text)}, expected ${String(test.expectText)}`);
    }
  }
  return found;
}
