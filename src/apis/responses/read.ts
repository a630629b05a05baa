/** What a request of Responses says, with what it goes on from and refers to. */
import { InvalidRequestError, NotFoundError } from "../../errors.ts";
import type { ServerContext } from "../../server/context.ts";
import { rawBody } from "../../server/raw-body.ts";
import type { RequestScope } from "../../server/request-scope.ts";
import { inTurns } from "../../steps.ts";
import { type AskedConversation, askedConversationSteps } from "./ask.ts";
import { isReference } from "./input.ts";
import { conversationId } from "./object.ts";
import type { Loose, PromptRequest } from "./schema.ts";
import { type ResponseStore, responseStore } from "./state.ts";

export interface ReadRequest {
  readonly asked: AskedConversation;
  /** What the request goes on from, oldest first, and its own items; references are replaced. */
  readonly earlier: readonly Loose[];
  readonly items: string | readonly Loose[];
  /** Those of `items` that came in the place of references. */
  readonly kept: ReadonlySet<Loose>;
}

/**
 * The conversation of a request. `before`: the items of the response that it goes on from, where the caller has them. Throws
 * GatewayErrors.
 */
export async function readRequest(
  request: PromptRequest,
  context: ServerContext,
  scope: RequestScope,
  before?: readonly Loose[],
): Promise<ReadRequest> {
  const store = storeOf(context);
  const former = before ?? (await contextOf(request, store, scope));
  const own = typeof request.input === "string" ? request.input : (request.input ?? []);
  const { earlier, items, kept } = await resolved(former, own, store, scope);
  const asked = await inTurns(
    askedConversationSteps(request, {
      context: earlier,
      items,
      raw: rawBody(request),
      open: (blob) => context.sealer.open(scope.tenant, blob, ""),
    }),
  );
  return { asked, earlier, items, kept };
}

const missingId = (param: string) => new InvalidRequestError(`Missing required parameter: '${param}'`, { param });

const storeOf = ({ history }: ServerContext): ResponseStore | undefined =>
  history === null ? undefined : responseStore(history);

async function contextOf(
  request: PromptRequest,
  store: ResponseStore | undefined,
  { tenant }: RequestScope,
): Promise<readonly Loose[]> {
  const previousResponseId = request.previous_response_id ?? undefined;
  const conversation = conversationId(request);
  if (previousResponseId === undefined && conversation === undefined) return [];
  if (store === undefined) {
    const param = previousResponseId === undefined ? "conversation" : "previous_response_id";
    throw new NotFoundError(`${param}: this server keeps nothing of former requests`, { param });
  }
  return store.context({ previousResponseId, conversationId: conversation }, tenant);
}

/** Items in the place of the references to them. */
async function resolved(
  before: readonly Loose[],
  own: string | readonly Loose[],
  store: ResponseStore | undefined,
  { tenant }: RequestScope,
): Promise<Omit<ReadRequest, "asked">> {
  const kept = new Set<Loose>();
  const references = [...before, ...(typeof own === "string" ? [] : own)].filter(isReference);
  if (references.length === 0) return { earlier: before, items: own, kept };
  const ids = references.map(({ id }) => id).filter((id) => typeof id === "string");
  const found = await store?.items([...new Set(ids)], tenant);
  const replaced = (items: readonly Loose[], at?: string) =>
    items.map((item, i) => {
      if (!isReference(item)) return item;
      const { id } = item;
      if (typeof id !== "string") throw missingId(`${at ?? "context"}[${i}].id`);
      const known = found?.get(id) ?? before.find((each) => each["id"] === id && !isReference(each));
      if (known !== undefined) {
        kept.add(known);
        return known;
      }
      const param = at === undefined ? "previous_response_id" : `${at}[${i}]`;
      throw new NotFoundError(`Item with id '${id.slice(0, 100)}' not found.`, { param });
    });
  return { earlier: replaced(before), items: typeof own === "string" ? own : replaced(own, "input"), kept };
}
