import {
  GatewayError,
  InvalidRequestError,
  OverloadedError,
  QueueFullError,
  TokenizerExistsError,
  WorkerExistsError,
  WorkerNotFoundError,
} from "../errors.ts";
import type { TokenizerHandle } from "../tokenizer/load.ts";
import { type EncodeOptions, TokenizerError } from "../tokenizer/tokenizer.ts";
import type { FleetAdmin } from "./admin.ts";
import { type AdminQuestion, adminOver, askAdmin } from "./admin-link.ts";
import type { TokenizerEntry } from "./snapshot.ts";

/** A tokenizer that is to be loaded besides those of the models. */
export interface NewTokenizer {
  /** Unique among models and tokenizers. */
  readonly name: string;
  /** A folder, a file or a repository, as `--model-path`. */
  readonly source: string;
  /** File with a chat template to use instead of the tokenizer's own. */
  readonly chatTemplatePath?: string;
}

/** Work that is done with the tokenizers' tables, on a compute thread. */
export interface Compute {
  /** Builds the tables of the tokenizer among `files`. Throws TokenizerError. */
  build(files: Map<string, Uint8Array>, cacheDir: string | undefined): Promise<TokenizerHandle>;
  /** Ids of a text. Throws TokenizerError, OverloadedError, and the signal's reason: what has not begun then never does. */
  encode(handle: TokenizerHandle, text: string, options: EncodeOptions, signal: AbortSignal): Promise<Uint32Array>;
  /** The same for a text that lies in shared memory already. */
  encodeShared(
    handle: TokenizerHandle,
    text: SharedText,
    options: EncodeOptions,
    signal: AbortSignal,
  ): Promise<Uint32Array>;
}

/** What serving threads ask of control. */
export interface Control extends Pick<Compute, "encode" | "encodeShared"> {
  /** Begins to load a tokenizer; the entry that comes back is still pending. Throws TokenizerExistsError. */
  addTokenizer(wanted: NewTokenizer): Promise<TokenizerEntry>;
  /** Forgets a tokenizer that was added; false if there is none of this id. */
  removeTokenizer(id: string): Promise<boolean>;
  readonly admin: FleetAdmin;
}

/** The same as messages between threads. Texts and ids lie in shared memory. */
export type Question =
  | {
      readonly type: "encode";
      readonly handle: TokenizerHandle;
      readonly text: SharedText;
      readonly options: EncodeOptions;
    }
  | { readonly type: "add-tokenizer"; readonly wanted: NewTokenizer }
  | { readonly type: "remove-tokenizer"; readonly id: string }
  | AdminQuestion;

export type Answer = { readonly value: unknown } | { readonly failure: Failure };

interface Failure {
  readonly kind: FailureKind;
  readonly message: string;
  /** Field of the request that is at fault. */
  readonly param?: string | undefined;
}

/** The asking end of a link: a `Control` whose questions go out as messages. */
export interface ControlLink {
  readonly control: Control;
  answered(id: number, answer: Answer): void;
}

/** `ask` sends a question, `forget` says that nobody waits for its answer any more. */
export function controlOver(send: {
  ask(id: number, question: Question): void;
  forget(id: number): void;
}): ControlLink {
  const open = new Map<number, (answer: Answer) => void>();
  let last = 0;
  function ask(question: Question, signal?: AbortSignal): Promise<unknown> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    const id = ++last;
    return new Promise((resolve, reject) => {
      const abort = () => {
        open.delete(id);
        send.forget(id);
        reject(signal?.reason);
      };
      signal?.addEventListener("abort", abort, { once: true });
      open.set(id, (answer) => {
        open.delete(id);
        signal?.removeEventListener("abort", abort);
        try {
          resolve(unwrap(answer));
        } catch (error) {
          reject(error);
        }
      });
      send.ask(id, question);
    });
  }
  const encodeShared: Control["encodeShared"] = async (handle, text, options, signal) =>
    (await ask({ type: "encode", handle, text, options }, signal)) as Uint32Array;
  return {
    answered: (id, answer) => open.get(id)?.(answer),
    control: {
      encode: (handle, text, options, signal) => encodeShared(handle, sharedText(text), options, signal),
      encodeShared,
      async addTokenizer(wanted) {
        return (await ask({ type: "add-tokenizer", wanted })) as TokenizerEntry;
      },
      async removeTokenizer(id) {
        return (await ask({ type: "remove-tokenizer", id })) as boolean;
      },
      admin: adminOver(ask),
    },
  };
}

/** The answering end of a link to one thread. */
export interface Answerer {
  asked(id: number, question: Question): void;
  forgotten(id: number): void;
  /** The thread is gone: what it asked for is given up. */
  close(): void;
}

export function answerer(control: Control, send: (id: number, answer: Answer) => void): Answerer {
  const open = new Map<number, AbortController>();
  const reply = async (question: Question, signal: AbortSignal): Promise<unknown> => {
    switch (question.type) {
      case "encode":
        return control.encodeShared(question.handle, question.text, question.options, signal);
      case "add-tokenizer":
        return control.addTokenizer(question.wanted);
      case "remove-tokenizer":
        return control.removeTokenizer(question.id);
      case "admin":
        return askAdmin(control.admin, question);
    }
  };
  return {
    asked(id, question) {
      const given = new AbortController();
      open.set(id, given);
      const done = (answer: Answer) => {
        if (open.delete(id)) send(id, answer);
      };
      reply(question, given.signal).then(
        (value) => done({ value }),
        (error: unknown) => done(failureOf(error)),
      );
    },
    forgotten(id) {
      const given = open.get(id);
      open.delete(id);
      given?.abort();
    },
    close() {
      for (const id of [...open.keys()]) this.forgotten(id);
    },
  };
}

/** UTF-8 in shared memory. */
export interface SharedText {
  readonly memory: SharedArrayBuffer;
  readonly length: number;
}

export function sharedText(text: string): SharedText {
  const memory = new SharedArrayBuffer(text.length * 3); // pages that are not written to take no room
  const { written } = new TextEncoder().encodeInto(text, new Uint8Array(memory));
  return { memory, length: written };
}

export function textOf({ memory, length }: SharedText): string {
  return Buffer.from(memory).utf8Slice(0, length);
}

/** Ids in shared memory: they go through several threads without being copied. */
export function sharedIds(ids: Uint32Array): Uint32Array {
  const shared = new Uint32Array(new SharedArrayBuffer(ids.byteLength));
  shared.set(ids);
  return shared;
}

/** Errors that keep their class on the way to another thread. By hand: a build shortens the names of classes. */
const FAILURES = {
  tokenizer: { is: TokenizerError, make: ({ message }: Failure) => new TokenizerError(message) },
  overloaded: { is: OverloadedError, make: ({ message }: Failure) => new OverloadedError(message) },
  exists: { is: TokenizerExistsError, make: told(TokenizerExistsError) },
  "worker-exists": { is: WorkerExistsError, make: told(WorkerExistsError) },
  "worker-unknown": { is: WorkerNotFoundError, make: told(WorkerNotFoundError) },
  invalid: { is: InvalidRequestError, make: told(InvalidRequestError) },
  "queue-full": {
    is: QueueFullError,
    make: ({ message }: Failure) => new QueueFullError(message, { retryAfterSecs: 5 }),
  },
} as const;

function told(Class: new (message: string, details?: { param?: string }) => Error) {
  return ({ message, param }: Failure): Error => new Class(message, param === undefined ? {} : { param });
}

type FailureKind = keyof typeof FAILURES | "other";

/** An error on its way to another thread. */
export function failureOf(error: unknown): Answer {
  const kinds = Object.keys(FAILURES) as (keyof typeof FAILURES)[];
  const kind = kinds.find((name) => error instanceof FAILURES[name].is) ?? "other";
  const message = error instanceof Error ? error.message : String(error);
  const param = error instanceof GatewayError ? error.param : undefined;
  return { failure: { kind, message, ...(param !== undefined && { param }) } };
}

/** The value of an answer. Throws what it failed with. */
export function unwrap(answer: Answer): unknown {
  if ("value" in answer) return answer.value;
  const { failure } = answer;
  throw failure.kind === "other" ? new Error(failure.message) : FAILURES[failure.kind].make(failure);
}
