/** `POST /v1/responses/compact`: a long conversation as a short one. */
import { EngineFailureError } from "../../errors.ts";
import type { ServerContext } from "../../server/context.ts";
import type { RequestScope } from "../../server/request-scope.ts";
import { idHeaders } from "../errors.ts";
import { checkPrompt } from "../responses/ask.ts";
import { prepareResponse, runResponse } from "../responses/create.ts";
import { readRequest } from "../responses/read.ts";
import type { Loose, ResponsesRequest } from "../responses/schema.ts";
import { inputItems } from "../responses/state.ts";
import { newId } from "../shared/ids.ts";
import type { CompactRequest } from "./schema.ts";

const ASK = `The conversation is about to be cut: from here on only your summary and the user's own messages are left of it. Write that summary now, as notes for whoever goes on with the work. Say what is to be done and what the user wants, what was done and decided, which facts, names, paths and figures are still needed, what tools have shown, and what comes next. Write the summary alone.`;

const BEFORE = "The conversation before this point was cut. Its summary:\n\n";

/**
 * The model sums the conversation up. The answer has the user's messages, the newest ones where they are many, and an item that holds the
 * sealed summary, which stands for the rest when it comes back in an input. Throws GatewayErrors; finishes the scope.
 */
export async function handleCompact(
  request: CompactRequest,
  context: ServerContext,
  scope: RequestScope,
): Promise<Response> {
  try {
    checkPrompt(request);
    const { earlier, items, kept } = await readRequest(request, context, scope);
    const all = [...earlier, ...inputItems(typeof items === "string" ? items : [...items], kept)];
    const { model, instructions } = request;
    const asking: ResponsesRequest = {
      model,
      instructions: instructions ?? null,
      input: [...all, { type: "message", role: "user", content: ASK }],
      store: false,
      truncation: "auto",
    };
    const prepared = await prepareResponse(asking, context, scope, []);
    const summed = await runResponse(prepared, undefined, context, scope);
    const { contextLength } = prepared.call.model.entry;
    const compaction = {
      id: newId("cmp_"),
      type: "compaction",
      encrypted_content: context.sealer.seal(scope.tenant, BEFORE + summaryOf(summed)),
    };
    return Response.json(
      {
        id: newId("resp_"),
        object: "response.compaction",
        created_at: summed["created_at"],
        output: [...newestOfUser(all, contextLength), compaction],
        usage: summed["usage"],
      },
      { headers: idHeaders("openai", scope.id) },
    );
  } finally {
    scope.finish();
  }
}

/** Throws EngineFailureError where there is none. */
function summaryOf({ status, error, output }: Loose): string {
  const texts = (output as readonly Loose[])
    .filter(({ type }) => type === "message")
    .flatMap(({ content }) => content as readonly Loose[])
    .map(({ text }) => String(text ?? ""));
  const summary = texts.join("").trim();
  if ((status === "completed" || status === "incomplete") && summary !== "") return summary;
  const message = (error as Loose | null)?.["message"] ?? "the model wrote no summary";
  throw new EngineFailureError(502, "compaction_failed", `The conversation could not be compacted: ${String(message)}`);
}

/** The user's messages, but for the oldest of those that have more than `characters` together: about a quarter of the context. */
function newestOfUser(items: readonly Loose[], characters: number): Loose[] {
  const own = items.filter(({ type, role }) => type === "message" && role === "user");
  let left = characters;
  const kept: Loose[] = [];
  for (const item of own.toReversed()) {
    left -= JSON.stringify(item["content"]).length;
    if (left < 0 && kept.length > 0) break;
    kept.unshift(item);
  }
  return kept;
}
