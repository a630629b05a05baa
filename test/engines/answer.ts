/** Asking a server of Chat Completions and Completions, and one form for its answers, streamed or not, so that two servers can be compared. */

export interface TokenProbability {
  readonly token: string;
  readonly logprob: number;
  readonly bytes: readonly number[] | null;
}

export interface LogprobItem extends TokenProbability {
  readonly top_logprobs: readonly TokenProbability[];
}

export interface AnswerChoice {
  text: string;
  finishReason: string | null;
  /** vLLM's `stop_reason`: the stop string or stop token of the request that ended the choice. */
  stopReason: string | number | null;
  tokenIds: number[] | undefined;
  logprobs: LogprobItem[] | undefined;
}

export interface Answer {
  readonly status: number;
  readonly choices: AnswerChoice[];
  readonly usage: { readonly prompt: number; readonly completion: number } | undefined;
  readonly promptTokenIds: readonly number[] | undefined;
  /** Message of the error object, where there is one. */
  readonly error: string | undefined;
  /** Streams only: what looks wrong in the order or the form of the frames. */
  readonly streamFaults: readonly string[];
}

export type ChatBody = Readonly<Record<string, unknown>>;

interface WireChoice {
  readonly index: number;
  readonly message?: { readonly content?: string | null; readonly role?: string };
  readonly delta?: { readonly content?: string | null; readonly role?: string };
  /** Completions only. */
  readonly text?: string;
  readonly finish_reason?: string | null;
  readonly stop_reason?: string | number | null;
  readonly token_ids?: number[] | null;
  readonly prompt_token_ids?: number[] | null;
  readonly logprobs?: ({ readonly content?: LogprobItem[] | null } & Partial<LegacyLogprobs>) | null;
}

/** Those of Completions. The first token of a prompt has no value. */
interface LegacyLogprobs {
  readonly tokens: readonly string[];
  readonly token_logprobs: readonly (number | null)[];
  readonly top_logprobs: readonly (Readonly<Record<string, number>> | null)[];
}

function legacyItems({ tokens, token_logprobs: values, top_logprobs: top }: LegacyLogprobs): LogprobItem[] {
  return tokens.map((token, i) => ({
    token,
    logprob: values[i] ?? 0,
    bytes: null,
    top_logprobs: Object.entries(top[i] ?? {})
      .map(([name, logprob]) => ({ token: name, logprob, bytes: null }))
      .sort((a, b) => b.logprob - a.logprob),
  }));
}

interface WireObject {
  readonly choices?: readonly WireChoice[];
  readonly usage?: { readonly prompt_tokens: number; readonly completion_tokens: number } | null;
  readonly prompt_token_ids?: number[] | null;
  readonly error?: { readonly message?: string };
}

const LONGEST_MS = 120_000;

/** A prompt that is no conversation goes to Completions. */
const isChat = (body: ChatBody): boolean => !("prompt" in body);

function post(base: string, body: ChatBody, signal?: AbortSignal): Promise<Response> {
  return fetch(`${base}/v1/${isChat(body) ? "chat/" : ""}completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    signal: signal ?? AbortSignal.timeout(LONGEST_MS),
  });
}

function emptyChoice(): AnswerChoice {
  return { text: "", finishReason: null, stopReason: null, tokenIds: undefined, logprobs: undefined };
}

function add(choice: AnswerChoice, wire: WireChoice): void {
  choice.text += wire.text ?? wire.message?.content ?? wire.delta?.content ?? "";
  if (wire.finish_reason) choice.finishReason = wire.finish_reason;
  if (wire.stop_reason !== undefined && wire.stop_reason !== null) choice.stopReason = wire.stop_reason;
  if (wire.token_ids) choice.tokenIds = [...(choice.tokenIds ?? []), ...wire.token_ids];
  if (wire.logprobs?.content) choice.logprobs = [...(choice.logprobs ?? []), ...wire.logprobs.content];
  if (wire.logprobs?.tokens)
    choice.logprobs = [...(choice.logprobs ?? []), ...legacyItems(wire.logprobs as LegacyLogprobs)];
}

function refusal(status: number, text: string): Answer {
  let message = text.slice(0, 500);
  try {
    message = (JSON.parse(text) as WireObject).error?.message ?? message;
  } catch {
    // not JSON: the text itself is shown
  }
  return { status, choices: [], usage: undefined, promptTokenIds: undefined, error: message, streamFaults: [] };
}

function usageOf(object: WireObject): Answer["usage"] {
  return object.usage ? { prompt: object.usage.prompt_tokens, completion: object.usage.completion_tokens } : undefined;
}

/** One request without `stream`. */
export async function ask(base: string, body: ChatBody): Promise<Answer> {
  const response = await post(base, body);
  const text = await response.text();
  if (response.status !== 200) return refusal(response.status, text);
  const object = JSON.parse(text) as WireObject;
  const choices = (object.choices ?? []).map((wire) => {
    const choice = emptyChoice();
    add(choice, wire);
    return choice;
  });
  return {
    status: 200,
    choices,
    usage: usageOf(object),
    promptTokenIds: object.prompt_token_ids ?? object.choices?.[0]?.prompt_token_ids ?? undefined,
    error: undefined,
    streamFaults: [],
  };
}

/** The data of every event of a body, in order. */
export async function* events(response: Response): AsyncGenerator<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let rest = "";
  for await (const bytes of response.body as unknown as AsyncIterable<Uint8Array>) {
    rest += decoder.decode(bytes, { stream: true });
    for (let end = rest.indexOf("\n\n"); end >= 0; end = rest.indexOf("\n\n")) {
      const frame = rest.slice(0, end);
      rest = rest.slice(end + 2);
      for (const line of frame.split("\n")) if (line.startsWith("data: ")) yield line.slice(6);
    }
  }
  if (rest !== "") yield `unfinished frame: ${rest.slice(0, 100)}`;
}

/** The same request as a stream, with usage, folded into the same form. */
export async function askStream(base: string, body: ChatBody): Promise<Answer> {
  const response = await post(base, { ...body, stream: true, stream_options: { include_usage: true } });
  if (response.status !== 200) return refusal(response.status, await response.text());
  const choices: AnswerChoice[] = [];
  const faults: string[] = [];
  let usage: Answer["usage"];
  let promptTokenIds: readonly number[] | undefined;
  let error: string | undefined;
  let done = false;
  for await (const data of events(response)) {
    if (done) faults.push("a frame after [DONE]");
    if (data === "[DONE]") {
      done = true;
      continue;
    }
    const object = JSON.parse(data) as WireObject;
    if (object.error) error = object.error.message ?? "error without a message";
    if (object.prompt_token_ids) promptTokenIds = object.prompt_token_ids;
    usage = usageOf(object) ?? usage;
    for (const wire of object.choices ?? []) {
      let choice = choices[wire.index];
      if (choice === undefined) {
        choice = choices[wire.index] = emptyChoice();
        // vLLM tells them beside an echo, too
        if (wire.index === 0 && wire.prompt_token_ids && body["return_token_ids"])
          promptTokenIds = wire.prompt_token_ids;
        if (isChat(body) && wire.delta?.role !== "assistant") faults.push("the first delta of a choice has no role");
      }
      if (choice.finishReason !== null) faults.push("a delta after finish_reason");
      add(choice, wire);
    }
  }
  if (!done && error === undefined) faults.push("no [DONE]");
  if (done && error !== undefined) faults.push("[DONE] after an error");
  return { status: 200, choices, usage, promptTokenIds, error, streamFaults: faults };
}

/** Starts a stream, reads `frames` events and goes away. */
export async function askAndLeave(base: string, body: ChatBody, frames: number): Promise<void> {
  const leaving = new AbortController();
  const response = await post(base, { ...body, stream: true }, leaving.signal);
  let seen = 0;
  try {
    for await (const _ of events(response)) if (++seen >= frames) leaving.abort();
  } catch (error) {
    if (!leaving.signal.aborted) throw error;
  }
  leaving.abort();
}

/** Starts a request without `stream` and goes away after a while. */
export async function askAndHangUp(base: string, body: ChatBody, afterMs: number): Promise<void> {
  const leaving = new AbortController();
  const timer = setTimeout(() => leaving.abort(), afterMs);
  try {
    await post(base, body, leaving.signal);
  } catch (error) {
    if (!leaving.signal.aborted) throw error;
  } finally {
    clearTimeout(timer);
  }
}
