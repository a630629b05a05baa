import { InvalidRequestError } from "../../errors.ts";
import type { NamedTokenizer } from "../../fleet/view.ts";
import {
  encodePrompt,
  isLong,
  type PromptEncoder,
  type RenderedPrompt,
  renderInTurns,
  renderPrompt,
} from "../../generation/prompt.ts";
import type { ServerContext } from "../../server/context.ts";
import { rawBody } from "../../server/raw-body.ts";
import type { RequestScope } from "../../server/request-scope.ts";
import { inTurns } from "../../steps.ts";
import type { EncodeOptions, Tokenizer } from "../../tokenizer/tokenizer.ts";
import { chatConversationSteps } from "../chat/messages.ts";
import { refuseUnsupportedPrompt } from "../shared/sampling-fields.ts";
import { JsonBody } from "./json-body.ts";
import { requestedTokenizer } from "./lookup.ts";
import type { TokenizeRequest } from "./schema.ts";
import { takingTurns } from "./turns.ts";

/** UTF-16 units and ids between two offers to give way. */
const SLICE = 1 << 18;
const STRINGS = 1 << 10;

/** Answers a tokenize request. `addByDefault`: BOS and the like are put around a prompt unless the request says otherwise. */
export async function handleTokenize(
  body: TokenizeRequest,
  addByDefault: boolean,
  context: ServerContext,
  scope: RequestScope,
): Promise<Response> {
  try {
    const named = requestedTokenizer(body.model, context);
    const { texts, segments } = await requestTexts(body, named);
    const addSpecialTokens = body.add_special_tokens ?? (addByDefault && !body.messages);
    const turn = takingTurns(scope.signal);
    const out = new JsonBody(turn);
    const strings = body.return_token_strs === true ? new JsonBody(turn) : undefined;
    const known = new Map<number, string>();
    const counts: number[] = [];
    const charCounts: number[] = [];
    const list = typeof texts === "string" ? [texts] : texts;
    const [open, close] = typeof texts === "string" ? ["", ""] : ["[", "]"];
    out.raw(`{"tokens":${open}`);
    strings?.raw(open);
    for (const [i, text] of list.entries()) {
      if (typeof text !== "string")
        throw new InvalidRequestError(`Invalid 'prompt[${i}]': expected a string`, { param: `prompt[${i}]` });
      if (i > 0) out.raw(",");
      if (i > 0) strings?.raw(",");
      const ids = await encoded({ text, ...(segments && { segments }) }, { addSpecialTokens }, named, context, scope);
      await out.ids(ids);
      if (strings !== undefined) await writeStrings(ids, named.tokenizer, known, strings, turn);
      counts.push(ids.length);
      charCounts.push(await characters(text, turn));
      const due = turn();
      if (due !== undefined) await due;
    }
    strings?.raw(close);
    const numbers = (all: number[]) => JSON.stringify(typeof texts === "string" ? all[0] : all);
    const contextLength = context.fleet.list().find(({ id }) => id === named.id)?.contextLength || null;
    out.raw(
      `${close},"count":${numbers(counts)},"char_count":${numbers(charCounts)},"max_model_len":${contextLength},"token_strs":`,
    );
    if (strings === undefined) out.raw("null");
    else out.append(strings);
    out.raw("}");
    return out.response({ "x-request-id": scope.id });
  } finally {
    scope.finish();
  }
}

/** The prompt, or what the messages are rendered to: that may have pieces. */
async function requestTexts(
  body: TokenizeRequest,
  named: NamedTokenizer,
): Promise<{ readonly texts: string | readonly unknown[] } & Pick<RenderedPrompt, "segments">> {
  const { messages } = body;
  const prompt: unknown = body.prompt ?? undefined;
  if (messages) {
    if (prompt !== undefined)
      throw new InvalidRequestError("prompt and messages exclude each other", { param: "messages" });
    refuseUnsupportedPrompt(body);
    if (named.template === undefined)
      throw new InvalidRequestError(`The tokenizer '${named.name}' has no chat template`, { param: "model" });
    const conversation = await inTurns(chatConversationSteps({ ...body, messages }, rawBody(body)));
    const template = named.template();
    const rendered = isLong(conversation)
      ? await renderInTurns(conversation, template)
      : renderPrompt(conversation, template);
    return { ...rendered, texts: rendered.text };
  }
  if (prompt === undefined) throw new InvalidRequestError("Missing required parameter: 'prompt'", { param: "prompt" });
  if (typeof prompt !== "string" && !Array.isArray(prompt))
    throw new InvalidRequestError("Invalid 'prompt': expected a string or a list of strings", { param: "prompt" });
  return { texts: prompt };
}

function encoded(
  prompt: RenderedPrompt,
  options: EncodeOptions,
  { handle, tokenizer }: NamedTokenizer,
  { control }: ServerContext,
  { signal }: RequestScope,
): Promise<Uint32Array> {
  const encodeLong: PromptEncoder["encodeLong"] = (text, how) => control.encode(handle, text, how, signal);
  return encodePrompt(prompt, { tokenizer, encodeLong }, 0, "prompt", options);
}

type Turn = () => Promise<void> | undefined;

/** Texts of tokens as JSON. `known` holds those that this request has had. */
async function writeStrings(
  ids: Uint32Array,
  tokenizer: Tokenizer,
  known: Map<number, string>,
  out: JsonBody,
  turn: Turn,
): Promise<void> {
  out.raw("[");
  for (let from = 0; from < ids.length; from += STRINGS) {
    let json = from > 0 ? "," : "";
    const to = Math.min(from + STRINGS, ids.length);
    for (let i = from; i < to; i++) {
      const id = ids[i]!;
      let text = known.get(id);
      if (text === undefined) {
        text = JSON.stringify(Buffer.from(tokenizer.tokenBytes(id)).toString("utf8"));
        known.set(id, text);
      }
      json += i > from ? `,${text}` : text;
    }
    out.raw(json);
    const due = turn();
    if (due !== undefined) await due;
  }
  out.raw("]");
}

/** Number of code points; a lone surrogate counts as one. */
async function characters(text: string, turn: Turn): Promise<number> {
  let count = text.length;
  for (let i = 1; i < text.length; i++) {
    if (isLowSurrogate(text.charCodeAt(i)) && isHighSurrogate(text.charCodeAt(i - 1))) count--;
    if (i % SLICE > 0) continue;
    const due = turn();
    if (due !== undefined) await due;
  }
  return count;
}

const isHighSurrogate = (unit: number): boolean => (unit & 0xfc00) === 0xd800;
const isLowSurrogate = (unit: number): boolean => (unit & 0xfc00) === 0xdc00;
