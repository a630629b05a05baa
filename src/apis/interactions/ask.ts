/** A request in the terms of no API: its conversation, and what is asked of the answer. */
import { ModelNotFoundError, UnsupportedError } from "../../errors.ts";
import type { FleetView } from "../../fleet/view.ts";
import { Turns } from "../../generation/turns.ts";
import type { Steps } from "../../steps.ts";
import type { TextAsk } from "../shared/call.ts";
import { constraintExtensions, onlyOne } from "../shared/constraint.ts";
import { asked, dispatchAsk, extensionAsk, refuseUnsupported } from "../shared/sampling-fields.ts";
import { losslessMember } from "../shared/tools.ts";
import { missing, wrong } from "./content.ts";
import { formatOf } from "./format.ts";
import { type OpenThought, StepReader } from "./input.ts";
import type { InteractionsRequest, Loose } from "./schema.ts";
import { interactionTools } from "./tools.ts";

const LEVELS = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
/** Fields of `generation_config` whose answers this API has no place for. */
const UNANSWERED = ["logprobs", "response_logprobs", "top_logprobs"];
const COUNTS = ["n", "candidate_count"];

/** Refuses what contradicts itself or cannot be served. Throws InvalidRequestError. */
export function checkRequest(
  body: InteractionsRequest,
): asserts body is InteractionsRequest & { readonly model: string } {
  if (body.agent) {
    if (body.model) throw wrong("agent", "model and agent exclude each other");
    throw new UnsupportedError("agent: this server has no agents, only models", { param: "agent" });
  }
  if (!body.model) throw missing("model");
  if (body.continuation_token)
    throw new UnsupportedError("continuation_token: answers here are never left to be continued", {
      param: "continuation_token",
    });
  if (body.cached_content)
    throw new UnsupportedError("cached_content: this server keeps no cached contents", { param: "cached_content" });
  if (body.background === true && body.store === false) throw wrong("background", "background needs store to be true");
  refuseUnsupported(body);
  const config: Loose = body.generation_config ?? {};
  refuseUnsupported(config);
  const where = (name: string) => ({ param: `generation_config.${name}` });
  for (const name of UNANSWERED)
    if (asked(config[name])) throw new UnsupportedError(`generation_config.${name} is not supported`, where(name));
  for (const name of COUNTS)
    if (asked(config[name]) && config[name] !== 1)
      throw new UnsupportedError(`generation_config.${name}: an interaction has one answer`, where(name));
}

/** A model's name without Google's prefix. */
export const bareName = (name: string): string => (name.startsWith("models/") ? name.slice("models/".length) : name);

/** The fleet's name of a model that a client may call `models/NAME`, as Google's lists have it. Throws ModelNotFoundError. */
export function modelName(name: string, fleet: Pick<FleetView, "model">): string {
  for (const candidate of new Set([name, bareName(name)])) {
    try {
      fleet.model(candidate);
      return candidate;
    } catch (error) {
      if (!(error instanceof ModelNotFoundError)) throw error;
    }
  }
  throw new ModelNotFoundError(name);
}

export interface AskSource {
  readonly model: string;
  /** Steps of the interactions before this one, oldest first. */
  readonly context: readonly Loose[];
  readonly open: OpenThought;
  /** The text of the request. */
  readonly raw: string | undefined;
}

export interface AskedInteraction {
  readonly ask: TextAsk;
  /** Types of steps that the model is not told of. */
  readonly left: ReadonlySet<string>;
}

/**
 * What a checked request asks. Instructions and tools are its own: only steps come from the interactions before. Throws
 * InvalidRequestErrors.
 */
export function* interactionAsk(
  body: InteractionsRequest,
  { model, context, open, raw }: AskSource,
): Steps<AskedInteraction> {
  const turns = new Turns({ joinUsers: true });
  if (body.system_instruction) turns.system(body.system_instruction);
  const reader = new StepReader(turns, open);
  yield* reader.context(context);
  yield* reader.input(body.input, raw);
  if (turns.messages.length === 0) throw wrong("input", "input has nothing in it that a model can be told");
  const format = yield* formatOf(body, raw);
  const config = body.generation_config ?? {};
  const level = config.thinking_level ?? undefined;
  if (level !== undefined && !LEVELS.includes(level))
    throw wrong(
      "generation_config.thinking_level",
      `generation_config.thinking_level must be one of ${LEVELS.join(", ")}`,
    );
  const constraint = onlyOne(
    [...(format ? [format.constraint] : []), ...constraintExtensions(body), ...constraintExtensions(config)],
    "response_format",
  );
  return {
    left: reader.left,
    ask: {
      model,
      conversation: {
        messages: turns.messages,
        ...(yield* interactionTools(body, raw)),
        addGenerationPrompt: true,
        continueFinalMessage: false,
        systemInPlace: true,
        ...(level !== undefined && { reasoningEffort: level }),
        ...(format && { responseFormat: format.responseFormat }),
        templateVariables: yield* templateVariables(body, raw),
      },
      sampling: sampling(body),
      constraint,
      tooLong: "clamp",
      // one in the background has readers, too
      stream: body.stream === true || body.background === true,
      param: "input",
      ...dispatchAsk(body),
      ...dispatchAsk(config),
    },
  };
}

/** Those in `generation_config` are taken before those beside it. */
function* templateVariables(body: InteractionsRequest, raw: string | undefined): Steps<Loose> {
  const inner = body.generation_config?.chat_template_kwargs;
  if (!inner && !body.chat_template_kwargs) return {};
  const holder =
    raw === undefined ? undefined : yield* losslessMember(raw, inner ? "generation_config" : "chat_template_kwargs");
  const exact = inner && holder instanceof Map ? (holder.get("chat_template_kwargs") as unknown) : holder;
  return (exact ?? inner ?? body.chat_template_kwargs) as Loose;
}

/** The engines' extensions may be in `generation_config` or beside it. */
function sampling(body: InteractionsRequest): TextAsk["sampling"] {
  const config = body.generation_config ?? {};
  const outer = extensionAsk(body);
  const given = Object.entries(extensionAsk(config)).filter(([, value]) => value !== undefined && value !== null);
  const inner = given.filter(([name, value]) => name !== "includeStop" || value === true);
  return {
    ...outer,
    ...Object.fromEntries(inner),
    temperature: config.temperature,
    topP: config.top_p,
    maxTokens: config.max_output_tokens,
    stop: config.stop_sequences,
  };
}
