/** What the client APIs go on from: a chain of former turns, or a conversation, as the history has them. */
import { NotFoundError, PreconditionError, PreviousNotFoundError } from "../../errors.ts";
import { type HistoryStore, type ResponseKind, UNFINISHED_STATUSES } from "../../history/store.ts";

/** An item of an input or output: nothing is known of it. */
export type ContextItem = Readonly<Record<string, unknown>>;

/** What a request goes on from: one of the two, or nothing. */
export interface ContextAsk {
  readonly previousResponseId?: string | undefined;
  readonly conversationId?: string | undefined;
}

/** Bounds on what is read for one request; a model's context is far smaller. */
const CHAIN_LIMITS = { maxTurns: 2000, maxBytes: 1 << 26 };
const ITEM_LIMITS = { maxItems: 5000, maxBytes: 1 << 26 };

/**
 * The items that come before a request's own, oldest first: of the previous turns, or the newest of the conversation. What is left out of
 * a long history is its beginning, and never a call without its result. Throws PreviousNotFoundError or NotFoundError where there is no
 * such thing of this tenant, and PreconditionError for a turn that is not over.
 */
export async function loadContext(
  history: HistoryStore | null,
  { previousResponseId, conversationId }: ContextAsk,
  tenant: string,
  kind: ResponseKind = "response",
): Promise<readonly ContextItem[]> {
  if (previousResponseId !== undefined) return chainItems(history, tenant, previousResponseId, kind);
  if (conversationId === undefined) return [];
  const newest = await history?.newestItems(tenant, conversationId, ITEM_LIMITS);
  if (!newest) throw noConversation(conversationId, "conversation");
  const items = newest.items.map(({ json }) => parsed(json));
  return newest.more ? withoutOrphans(items) : items;
}

const parsed = (json: string): ContextItem => JSON.parse(json) as ContextItem;

/** No conversation of this id, or one of another tenant. */
export const noConversation = (id: string, param?: string): NotFoundError =>
  new NotFoundError(`Conversation with id '${id.slice(0, 100)}' not found.`, { ...(param !== undefined && { param }) });

async function chainItems(
  history: HistoryStore | null,
  tenant: string,
  id: string,
  kind: ResponseKind,
): Promise<readonly ContextItem[]> {
  const chain = await history?.readChain(tenant, id, CHAIN_LIMITS);
  const last = chain?.turns.at(-1);
  const param = `previous_${kind}_id`;
  if (!chain || last?.kind !== kind)
    throw new PreviousNotFoundError(`Previous ${kind} with id '${id.slice(0, 100)}' not found.`, { param });
  if (isUnfinished(last.status))
    throw new PreconditionError(`The previous ${kind} is ${shownStatus(last.status)}: it cannot be gone on from yet`, {
      param,
    });
  const items = chain.turns.flatMap(({ input, output }) => [...input, ...output].map(parsed));
  return chain.begin === "first_turn" ? items : withoutOrphans(items);
}

/** Whether something still works on a response. */
export const isUnfinished = (status: string): boolean => (UNFINISHED_STATUSES as readonly string[]).includes(status);

/** The status that clients are told: no API has a word for a cancel that is under way. */
export const shownStatus = (status: string): string => (status === "canceling" ? "in_progress" : status);

/** Without the results of calls that were cut off with what came before. */
function withoutOrphans(items: readonly ContextItem[]): readonly ContextItem[] {
  const called = new Set<unknown>();
  return items.filter(({ type, call_id: call }) => {
    if (call === undefined || typeof type !== "string") return true;
    if (!/_(?:output|result)$/.test(type)) called.add(call);
    return called.has(call);
  });
}
