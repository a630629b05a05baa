/** Batches of Messages: what is asked of them. */
import { InvalidRequestError, NotFoundError, PreconditionError, UnsupportedError } from "../../errors.ts";
import { rawMemberItemsSteps } from "../../generation/raw-members.ts";
import { UnknownCursorError } from "../../history/errors.ts";
import type { HistoryStore, StoredResponse } from "../../history/store.ts";
import type { ServerContext } from "../../server/context.ts";
import { rawBody } from "../../server/raw-body.ts";
import type { RequestScope } from "../../server/request-scope.ts";
import { inTurns } from "../../steps.ts";
import { idPage, type PageQuery } from "../anthropic/page.ts";
import { idHeaders } from "../errors.ts";
import { newId } from "../shared/ids.ts";
import { takingTurns } from "../tokens/turns.ts";
import { type BatchBody, newBatch, shownBatch, timeText } from "./object.ts";
import { BatchCancelledError, resultPages, resumeLost, startBatch } from "./run.ts";
import type { BatchRequest } from "./schema.ts";

/** A request for a batch. `origin`: the server's address as the client knows it. */
export interface BatchAsk {
  readonly id: string;
  readonly tenant: string;
  readonly origin: string;
}

function storeOf({ history }: Pick<ServerContext, "history">): HistoryStore {
  if (history === null) throw new UnsupportedError("Batches need a store, and this server keeps nothing");
  return history;
}

/** Stores a batch and begins to work on it. The scope is finished then. */
export async function createBatch(
  body: BatchRequest,
  origin: string,
  context: ServerContext,
  scope: RequestScope,
): Promise<Response> {
  try {
    const history = storeOf(context);
    const input = await requestTexts(body, takingTurns(scope.signal));
    const id = newId("msgbatch_");
    const createdAt = Date.now();
    const row = { status: "in_progress", body: JSON.stringify(newBatch(id, createdAt, input.length)) };
    const { tenant } = scope;
    await history.putResponse({
      tenant,
      id,
      kind: "batch",
      createdAt,
      previousId: null,
      conversationId: null,
      model: null,
      safetyIdentifier: null,
      ...row,
      input,
      output: [],
      itemIds: [],
    });
    startBatch({ tenant, id }, history, context);
    return Response.json(shownBatch(row, origin), { headers: idHeaders("anthropic", scope.id) });
  } finally {
    scope.finish();
  }
}

/** The requests as the client wrote them, each with an id of its own. */
async function requestTexts(body: BatchRequest, giveWay: () => Promise<void> | undefined): Promise<readonly string[]> {
  const seen = new Set<string>();
  for (const [i, { custom_id: custom }] of body.requests.entries()) {
    if (seen.has(custom)) {
      throw new InvalidRequestError(`requests[${i}].custom_id: '${custom}' is there twice`, {
        param: `requests[${i}].custom_id`,
      });
    }
    seen.add(custom);
    await giveWay();
  }
  const raw = rawBody(body);
  if (raw === undefined) return body.requests.map((request) => JSON.stringify(request));
  return await inTurns(rawMemberItemsSteps(raw, "requests"));
}

/** The row of a batch; one that nobody works on any more is gone on with. Throws NotFoundError. */
async function found({ tenant, id }: BatchAsk, history: HistoryStore, context: ServerContext): Promise<StoredResponse> {
  const row = await history.getResponse(tenant, id);
  if (row?.kind !== "batch") throw new NotFoundError(`There is no message batch '${id.slice(0, 100)}'`);
  if (row.status === "ended") return row;
  const state = await history.getState(tenant, id);
  if (state !== null) resumeLost({ tenant, id }, state.updatedAt, history, context);
  return row;
}

export async function getBatch(ask: BatchAsk, context: ServerContext): Promise<object> {
  return shownBatch(await found(ask, storeOf(context), context), ask.origin);
}

/** The same in the words of Anthropic's API. */
const unknownCursor = ({ param }: UnknownCursorError): InvalidRequestError =>
  new InvalidRequestError(`${param}_id names nothing in this list`, { param: `${param}_id` });

/** The newest first. */
export async function listBatches(
  { tenant, origin }: Omit<BatchAsk, "id">,
  { limit, after, before }: PageQuery,
  context: ServerContext,
): Promise<object> {
  const cursors = { ...(after !== undefined && { after }), ...(before !== undefined && { before }) };
  const page = await storeOf(context)
    .listResponses(tenant, "batch", { limit, order: "desc", ...cursors })
    .catch((error: unknown) => {
      throw error instanceof UnknownCursorError ? unknownCursor(error) : error;
    });
  return idPage(
    page.data.map((row) => shownBatch(row, origin)),
    page.hasMore,
  );
}

/** Asks for the end of a batch; one that has ended, or is about to, stays as it is. */
export async function cancelBatch(ask: BatchAsk, context: ServerContext): Promise<object> {
  const history = storeOf(context);
  const row = await found(ask, history, context);
  if (row.status !== "in_progress") return shownBatch(row, ask.origin);
  const { tenant, id } = ask;
  const now = Date.now();
  const body = JSON.stringify({ ...(JSON.parse(row.body) as BatchBody), cancel_initiated_at: timeText(now) });
  const outcome = await history.updateResponse({
    tenant,
    id,
    updatedAt: now,
    ifStatus: ["in_progress"],
    status: "canceling",
    result: { body, output: [], itemIds: [] },
  });
  if (outcome !== "stored") return getBatch(ask, context);
  context.runs.get(id)?.abort(new BatchCancelledError());
  return shownBatch({ body, status: "canceling" }, ask.origin);
}

export async function deleteBatch(ask: BatchAsk, context: ServerContext): Promise<object> {
  const history = storeOf(context);
  const { status } = await found(ask, history, context);
  if (status !== "ended") throw new PreconditionError("A batch can be deleted once it has ended: cancel it first");
  await history.deleteResponse(ask.tenant, ask.id);
  return { id: ask.id, type: "message_batch_deleted" };
}

/** The results, one line of JSON each, in the order in which they came. */
export async function batchResults(ask: BatchAsk, context: ServerContext): Promise<Response> {
  const history = storeOf(context);
  const { tenant, id } = ask;
  const { status } = await found(ask, history, context);
  if (status !== "ended") throw new PreconditionError("The batch has not ended: there are no results yet");
  const pages = resultPages(history, tenant, id);
  const utf8 = new TextEncoder();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { value, done } = await pages.next();
      if (done === true) controller.close();
      else controller.enqueue(utf8.encode(value.map(({ json }) => `${json}\n`).join("")));
    },
    async cancel() {
      await pages.return();
    },
  });
  return new Response(body, { headers: { "content-type": "application/x-jsonl" } });
}
