/**
 * What the client APIs keep: responses (with interactions and batches), conversations with their items, and logs of events. Each
 * belongs to a tenant; whoever asks as another one finds nothing. JSON is kept as the text that it was given as.
 */

/** What a stored response is for its API: of Responses, of Interactions, or a batch of Messages. Lists are of one kind. */
export type ResponseKind = "response" | "interaction" | "batch";

/** Statuses in which something still works on a response; all others are final. */
export const UNFINISHED_STATUSES = ["queued", "in_progress", "canceling"] as const;

export interface StoredResponse {
  /** Whose it is; "" where callers are not told apart. */
  readonly tenant: string;
  readonly id: string;
  readonly kind: ResponseKind;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  /** `previous_response_id` or `previous_interaction_id`. */
  readonly previousId: string | null;
  readonly conversationId: string | null;
  readonly model: string | null;
  readonly safetyIdentifier: string | null;
  /** The API's own word, such as `completed`. */
  readonly status: string;
  /** The whole object as the client sees it: JSON text. */
  readonly body: string;
  /** Its own input items, without those of the turns before: JSON texts. */
  readonly input: readonly string[];
  /** What the model gave, as the next turn needs it, which may be more than `body` shows: JSON texts. */
  readonly output: readonly string[];
}

export interface NewResponse extends StoredResponse {
  /** Ids of its items, by which `findItems` finds them; each must be the `id` of an item of `input` or `output`. */
  readonly itemIds: readonly string[];
  /** Items that go to the end of `conversationId` with it, all or nothing. */
  readonly conversationItems?: readonly StoredItem[];
}

export interface ResponseUpdate {
  readonly tenant: string;
  readonly id: string;
  /** Milliseconds since 1970; also what `listUnfinished` goes by, so an update of nothing else says that work goes on. */
  readonly updatedAt: number;
  /** Changes nothing if the status is none of these: of a cancel and an end, the first one holds. */
  readonly ifStatus?: readonly string[];
  readonly status?: string;
  /** `body` and `output` change together; `itemIds` as in `NewResponse`, of the input too. */
  readonly result?: { readonly body: string; readonly output: readonly string[]; readonly itemIds: readonly string[] };
  readonly conversationItems?: readonly StoredItem[];
}

/** `no_conversation`: done, but the conversation is gone, and the items for it went nowhere. */
export type PutOutcome = "stored" | "no_conversation";
export type UpdateOutcome = PutOutcome | "not_found" | "other_status";

export interface StoredItem {
  readonly id: string;
  /** JSON text of the whole item, its `id` and `type` in it. */
  readonly json: string;
}

export interface Conversation {
  readonly tenant: string;
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  /** JSON text. */
  readonly metadata: string;
}

/**
 * Which part of a list. `after` and `before` are ids in it; with `before` alone, the part that ends just there.
 * `order` goes by when it was stored.
 */
export interface PageRequest {
  readonly limit: number;
  readonly order: "asc" | "desc";
  readonly after?: string;
  readonly before?: string;
}

export interface Page<T> {
  /** In the order that was asked for. */
  readonly data: readonly T[];
  /** Whether the list goes on in the direction in which it was read. */
  readonly hasMore: boolean;
}

export interface ListedResponse {
  readonly id: string;
  readonly createdAt: number;
  readonly status: string;
  readonly body: string;
}

export interface ChainLimits {
  readonly maxTurns: number;
  /** UTF-8 bytes of input and output. The newest turn is given whatever its size. */
  readonly maxBytes: number;
}

export type ChainTurn = Pick<
  StoredResponse,
  "id" | "kind" | "createdAt" | "conversationId" | "model" | "status" | "input" | "output"
>;

/**
 * A response and those before it. A deleted one ends the chain: it and what is older is no longer seen, and the rest goes on, as at
 * OpenAI (community.openai.com/t/1149127).
 */
export interface Chain {
  /** Oldest first; the last one is the one that was asked for. */
  readonly turns: readonly ChainTurn[];
  /** Why it begins where it does: the first turn, a turn that is not there any more, or a limit. */
  readonly begin: "first_turn" | "missing" | "max_turns" | "max_bytes";
}

export interface NewestItems {
  /** Oldest first. */
  readonly items: readonly StoredItem[];
  /** Whether older ones were left out. */
  readonly more: boolean;
}

/** How far a response has come. */
export interface ResponseState {
  readonly status: string;
  /** Of an unfinished one, when it was last updated: milliseconds since 1970. Null for all others. */
  readonly updatedAt: number | null;
}

export interface StoredEvent {
  readonly sequence: number;
  readonly json: string;
}

export interface UnfinishedResponse {
  readonly tenant: string;
  readonly id: string;
  readonly kind: ResponseKind;
  readonly status: string;
  /** Milliseconds since 1970. */
  readonly updatedAt: number;
}

/**
 * A store. What a write has resolved for, the next read finds, in every thread and process; for the stores on disk also after a
 * crash. Every method may throw `HistoryUnavailableError`. Not found is null, false or its own word.
 */
export interface HistoryStore {
  /** Throws `HistoryConflictError` where the id is taken. */
  putResponse(response: NewResponse): Promise<PutOutcome>;
  getResponse(tenant: string, id: string): Promise<StoredResponse | null>;
  /** Without the texts of the response: cheap enough to be asked for while one waits. */
  getState(tenant: string, id: string): Promise<ResponseState | null>;
  updateResponse(update: ResponseUpdate): Promise<UpdateOutcome>;
  /** With its log; items that a conversation has stay there. False if there was none. */
  deleteResponse(tenant: string, id: string): Promise<boolean>;
  /** Throws `UnknownCursorError`, as all lists do. */
  listResponses(tenant: string, kind: ResponseKind, page: PageRequest): Promise<Page<ListedResponse>>;
  /** In one query. Null if `id` itself is not there. */
  readChain(tenant: string, id: string, limits: ChainLimits): Promise<Chain | null>;
  /** Null if the response is not there. Items without an `id` count, but no cursor names them. */
  listInputItems(tenant: string, id: string, page: PageRequest): Promise<Page<StoredItem> | null>;
  /** Items of any response or conversation of the tenant, once each, in any order; those that are not there are left out. */
  findItems(tenant: string, ids: readonly string[]): Promise<readonly StoredItem[]>;

  /** Throws `HistoryConflictError` where the id is taken. */
  createConversation(conversation: Conversation, items: readonly StoredItem[]): Promise<void>;
  getConversation(tenant: string, id: string): Promise<Conversation | null>;
  updateConversation(tenant: string, id: string, metadata: string, updatedAt: number): Promise<Conversation | null>;
  /** With those of its items that nothing else holds. */
  deleteConversation(tenant: string, id: string): Promise<boolean>;
  /**
   * To its end, in this order. Items are shared by id: of an item that the tenant has in a conversation already, the stored form
   * stays, and one that is in this conversation already keeps its place. False if there is no such conversation.
   */
  addItems(tenant: string, conversationId: string, items: readonly StoredItem[], addedAt: number): Promise<boolean>;
  getItem(tenant: string, conversationId: string, itemId: string): Promise<StoredItem | null>;
  listItems(tenant: string, conversationId: string, page: PageRequest): Promise<Page<StoredItem> | null>;
  /** The end of a conversation, for a prompt. `maxBytes` counts UTF-8; the newest item is given whatever its size. */
  newestItems(
    tenant: string,
    conversationId: string,
    limits: { readonly maxItems: number; readonly maxBytes: number },
  ): Promise<NewestItems | null>;
  /** Out of this conversation; the item itself goes where nothing else holds it. False if it was not in it. */
  removeItem(tenant: string, conversationId: string, itemId: string): Promise<boolean>;

  /**
   * Appends to a response's log, whose events are numbered from 0. `first` is the number of the first of these; a log that does not
   * end just before it is a `HistoryConflictError`: append one batch after the other. `events` are JSON texts without line ends.
   * False if the response is gone, or its status is a final one: the log is over then, whoever has ended it.
   */
  appendEvents(tenant: string, id: string, first: number, events: readonly string[]): Promise<boolean>;
  /**
   * Events with a number above `after` (-1 for all), in order: at most `maxEvents`, and no more once `maxBytes` characters are
   * reached. What another process appends is seen. Null if the response is not there.
   */
  readEvents(
    tenant: string,
    id: string,
    after: number,
    limits: { readonly maxEvents: number; readonly maxBytes: number },
  ): Promise<readonly StoredEvent[] | null>;

  /** Of all tenants: responses in an unfinished status with no update since `updatedBefore`, whose runner is gone. Oldest first. */
  listUnfinished(updatedBefore: number, limit: number): Promise<readonly UnfinishedResponse[]>;
  /**
   * Retention, over all tenants: responses created, and conversations last changed, before `before` (milliseconds). Removes about
   * `limit` rows at most and says how many: until 0, there is more to do.
   */
  removeExpired(before: number, limit: number): Promise<number>;
  close(): Promise<void>;
}

/** The calls of a store that go over a wire. */
export type StoreMethod = Exclude<keyof HistoryStore, "close">;
/** A store whose calls end before they return. */
export type SyncStore = {
  readonly [M in StoreMethod]: (...args: Parameters<HistoryStore[M]>) => Awaited<ReturnType<HistoryStore[M]>>;
};
