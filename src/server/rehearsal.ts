/** Requests that are rehearsed: they take the whole way through the app, to an engine that is not there. */
import { createStandInEngine } from "../engines/vllm/stand-in.ts";
import { FleetView, type Model } from "../fleet/view.ts";
import { FleetBoard, WorkerState } from "../threads/fleet-board.ts";
import { createTokenizerCache } from "../tokenizer/cache/board.ts";
import { openTokenizer } from "../tokenizer/load.ts";
import { sampleText } from "../tokenizer/sample-text.ts";
import type { ServerContext } from "./context.ts";

const contexts = new WeakMap<Request, ServerContext>();

/** What a request is handled with: `usual`, unless it is rehearsed. */
export const contextOf = (request: Request, usual: ServerContext): ServerContext => contexts.get(request) ?? usual;

/** Of the copy of a model's cache. */
const CACHE = { l0Entries: 64, bytes: 1 << 20 };

/**
 * A fleet of one model, whose worker is a stand-in: the model of another fleet with its tokenizer and its template, but a board and a
 * cache of its own, so that nothing of what is rehearsed is left behind.
 */
class RehearsalFleet extends FleetView {
  private readonly only: Model;

  constructor(real: Model, answerTokens: number) {
    const board = FleetBoard.create(1);
    const slot = board.claim();
    board.setState(slot, WorkerState.ready);
    const plain = openTokenizer(real.entry.tokenizer);
    const answer = plain.encode(sampleText(plain, 2 * answerTokens, 1)).slice(0, answerTokens);
    super(board, 0, () => createStandInEngine(answer));
    const { id } = real.entry;
    const tokenizerCache = real.entry.tokenizerCache && createTokenizerCache({ l0: true, l1: true, ...CACHE });
    this.apply({
      workers: [{ id, slot, url: "grpc://stand-in", dialect: "vllm", model: id }],
      expected: 1,
      models: [{ ...real.entry, tokenizerCache }],
      tokenizers: [],
    });
    this.only = { ...super.model(id), template: real.template, waitsForReasoning: real.waitsForReasoning };
  }

  override model(): Model {
    return this.only;
  }
}

export interface Rehearsal {
  /** Marks a request as one that is rehearsed. Its answer has `answerTokens` tokens, whatever it asks for. */
  add(request: Request): void;
  close(): void;
}

/** Rehearsals of requests to a model that chats. */
export function rehearse(model: Model, context: ServerContext, answerTokens: number): Rehearsal {
  const fleet = new RehearsalFleet(model, answerTokens);
  const rehearsed: ServerContext = { ...context, fleet, metrics: undefined };
  return {
    add: (request) => contexts.set(request, rehearsed),
    close: () => fleet.close(),
  };
}
