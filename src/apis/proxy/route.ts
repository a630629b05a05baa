/** By what the HTTP worker of a request is chosen. */
import type { HttpEndpoint } from "../../engines/http/engine.ts";
import type { NamedTokenizer } from "../../fleet/view.ts";
import {
  encodePrompt,
  MANY_MESSAGES,
  type RenderedPrompt,
  renderInTurns,
  renderPrompt,
} from "../../generation/prompt.ts";
import { withMember } from "../../generation/raw-members.ts";
import type { RouteAsk } from "../../routing/ask.ts";
import type { ServerContext } from "../../server/context.ts";
import { rawBody } from "../../server/raw-body.ts";
import type { RequestScope } from "../../server/request-scope.ts";
import { inTurns } from "../../steps.ts";
import { chatConversationSteps } from "../chat/messages.ts";
import type { ChatRequest } from "../chat/schema.ts";

/** Tokens that are not counted: so many bytes make one. */
const BYTES_PER_TOKEN = 4;
/** Of a prompt only so much is looked up: what is alike is alike at the beginning. */
const LOOKED_UP = 1 << 18;
/** Bodies that are longer are not even read for it. */
const MOST_BODY = 1 << 22;

/** A client's request, of which nothing was checked. */
interface Asked {
  readonly endpoint: HttpEndpoint;
  readonly model: string;
  readonly body: object;
  readonly text: string;
}

/** Where the gateway has the tokenizer of the model, and somebody goes by tokens, the prompt is made into them. Never rejects. */
export async function routeOf(asked: Asked, context: ServerContext, scope: RequestScope): Promise<RouteAsk> {
  const { model, text, body } = asked;
  const estimate = Math.ceil(text.length / BYTES_PER_TOKEN);
  const named = text.length > MOST_BODY ? undefined : context.fleet.routingTokenizer(model);
  // what the worker refuses it refuses in its own words
  const tokenIds = named && (await promptTokens(asked, named, context, scope).catch(() => undefined));
  const { lora_path: lora } = body as { lora_path?: unknown };
  const cacheSalt = saltIn(body);
  return {
    ...scope.route?.hints,
    tokenIds,
    tokens: tokenIds?.length ?? estimate,
    ...(cacheSalt !== undefined && { cacheSalt }),
    ...(typeof lora === "string" && { lora }),
  };
}

async function promptTokens(
  { endpoint, body }: Asked,
  named: NamedTokenizer,
  { control }: ServerContext,
  { signal }: RequestScope,
): Promise<Uint32Array | undefined> {
  const isChat = endpoint === "/v1/chat/completions";
  if (!isChat && endpoint !== "/v1/completions") return undefined;
  const prompt = isChat ? await rendered(body as ChatRequest, named) : promptIn(body);
  if (prompt === undefined || prompt instanceof Uint32Array) return prompt;
  const { handle, tokenizer } = named;
  const encoder = {
    tokenizer,
    encodeLong: (long: string, how: object) => control.encode(handle, long, how, signal),
  };
  const addSpecialTokens = !isChat && (body as { add_special_tokens?: unknown }).add_special_tokens !== false;
  return encodePrompt(beginning(prompt), encoder, 0, "prompt", { addSpecialTokens });
}

/** What keeps a request's blocks apart from those of others: vLLM's word for it, and SGLang's besides, which may be a list. */
function saltIn(body: object): string | undefined {
  const { cache_salt: salt, extra_key: extra } = body as { cache_salt?: unknown; extra_key?: unknown };
  const isMore = typeof extra === "string" || Array.isArray(extra);
  if (isMore) return JSON.stringify([salt, extra]);
  return typeof salt === "string" ? salt : undefined;
}

/** The prompt of a request for completions; of several, the first. */
function promptIn(body: object): RenderedPrompt | Uint32Array | undefined {
  const { prompt } = body as { prompt?: unknown };
  const first: unknown = Array.isArray(prompt) && typeof prompt[0] !== "number" ? prompt[0] : prompt;
  if (typeof first === "string") return { text: first };
  return Array.isArray(first) && first.every(Number.isInteger) ? Uint32Array.from(first as number[]) : undefined;
}

async function rendered(body: ChatRequest, { template }: NamedTokenizer): Promise<RenderedPrompt | undefined> {
  if (template === undefined) return undefined;
  const conversation = await inTurns(chatConversationSteps(body, rawBody(body)));
  const isLong = conversation.messages.length > MANY_MESSAGES;
  return isLong ? await renderInTurns(conversation, template()) : renderPrompt(conversation, template());
}

const beginning = (prompt: RenderedPrompt): RenderedPrompt =>
  prompt.text.length > LOOKED_UP ? { text: prompt.text.slice(0, LOOKED_UP) } : prompt;

/** Members by which the gateway tells engines of one another; from clients they would steer the fleet from the inside. */
const INNER_MEMBERS = [
  "bootstrap_host",
  "bootstrap_port",
  "bootstrap_room",
  "kv_transfer_params",
  "routed_dp_rank",
  "disagg_prefill_dp_rank",
  "data_parallel_rank",
] as const;

/** The client's JSON without what is only for the gateway to say. */
export function withoutInnerMembers(text: string, body: object): string {
  let kept = text;
  for (const name of INNER_MEMBERS) if (name in body) kept = withMember(kept, name, "null");
  return kept;
}

/** The same JSON for one data-parallel rank. Of two members of a name the last would hold. */
export function atRank(text: string, rank: number): string {
  const replaced = withMember(text, "routed_dp_rank", String(rank));
  return replaced === text ? text.replace("{", `{"routed_dp_rank":${rank},`) : replaced;
}
