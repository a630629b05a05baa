/**
 * DeepSeek V4, its refresh of 2026-07-31, and V4.1. The formats are those of the models' published `encoding/encoding_dsv4.py` and
 * `encoding/encoding.py`. Two things go beyond V4.1's: developer messages are user turns, as in V4 (the published encoder raises), and
 * the effort `xhigh` counts as in the maker's own service. Its tool namespaces (`a::b`) are not made here.
 */

import { PIECE_ITEMS, type Steps } from "../../steps.ts";
import type { ChatTemplate } from "../chat-template.ts";
import { type Dict, truthy } from "../engine/values.ts";
import type { PreparedMessage } from "../prepare-messages.ts";
import { type Conversation, encoderTemplate, refuse } from "./conversation.ts";
import * as text from "./deepseek-text.ts";
import { type Turn, turnsOf } from "./deepseek-turns.ts";
import { BLANK, declarations, withTools } from "./deepseek-v32.ts";
import { callsText, lenientArguments, wrappedArguments } from "./dsml.ts";
import { type Call, callsOf, contentText, field, partsOf, reasoningOf } from "./fields.ts";
import { levelOf, thinkingOf } from "./thinking.ts";

/** What differs between the releases. */
interface Release {
  readonly tags: text.Tags;
  readonly argumentsOf: (call: Call) => Dict;
  readonly thinks: boolean;
  /** A system message has its own token, and behind the first one it is a turn to answer. */
  readonly systemTurns: boolean;
  /** Stands for an image; undefined: the model takes none. */
  readonly image: string | undefined;
  /** The text that leads a prompt with reasoning. */
  readonly lead: (effort: string | number | undefined) => string;
}

const unknownEffort = (effort: string | number): never =>
  refuse(`The model knows no reasoning effort '${effort}'`, "reasoning_effort");

/** @param byDefault the level when the request names none. */
const byLevel =
  (levels: ReadonlyMap<string, string>, byDefault: string) =>
  (effort: string | number = byDefault): string =>
    levels.get(String(effort)) ?? unknownEffort(effort);

function byBudget(effort: string | number = "high"): string {
  const budget = typeof effort === "number" ? effort : text.V41_BUDGETS.get(effort);
  return budget !== undefined && budget >= 1 && budget <= 100 ? text.budgetText(budget) : unknownEffort(effort);
}

const V4 = { tags: text.V4_TAGS, argumentsOf: wrappedArguments, thinks: false, systemTurns: false, image: undefined };

export const deepseekV4 = release({ ...V4, lead: byLevel(text.V4_EFFORTS, "high") });
export const deepseekV40731 = release({ ...V4, lead: byLevel(text.V4_0731_EFFORTS, "low") });
export const deepseekV41 = release({
  tags: text.V41_TAGS,
  argumentsOf: lenientArguments,
  thinks: true,
  systemTurns: true,
  image: text.IMAGE,
  lead: byBudget,
});

function release(model: Release): ChatTemplate {
  return encoderTemplate((conversation) => encode(model, conversation));
}

interface Prompt {
  readonly model: Release;
  readonly turns: readonly Turn[];
  readonly thinking: boolean;
  /** Reasoning before the last user turn is left out. */
  readonly drops: boolean;
  readonly lastUser: number;
  readonly addGenerationPrompt: boolean;
}

function* encode(model: Release, { messages, tools, variables, addGenerationPrompt }: Conversation): Steps<string> {
  const thinking = thinkingOf(variables, model.thinks);
  const lead = model.lead(levelOf(variables, "reasoning_effort"));
  for (const message of messages) refusePlaceholder(model, message);
  const all = turnsOf(withTools(messages, tools), model.image);
  const declared = all.some(({ message }) => truthy(field(message, "tools")));
  const drops = !declared && truthy(variables.get("drop_thinking") ?? true);
  const turns = thinking && drops ? withoutOld(all, model) : all;
  const prompt = { model, turns, thinking, drops, lastUser: lastUserOf(turns, model), addGenerationPrompt };
  const [first] = turns;
  const leads = (thinking ? lead : "") !== "" || first?.role === "system";
  let whole = text.BOS + (model.systemTurns && leads ? text.SYSTEM : "") + (thinking ? lead : "");
  for (const [at, turn] of turns.entries()) {
    whole += (yield* turnText(turn, at, prompt)) + transition(turn, at, prompt);
    if (at % PIECE_ITEMS === PIECE_ITEMS - 1) yield;
  }
  return whole;
}

/** What stands for an image would become one. */
function refusePlaceholder({ image }: Release, message: PreparedMessage): void {
  if (image === undefined) return;
  const texts = [reasoningOf(message), ...partsOf(field(message, "content")).map((p) => (p === "image" ? "" : p.text))];
  if (texts.some((each) => each.includes(image))) refuse(`A message holds the model's own token ${image}`);
}

const isUser = ({ role }: Turn, at: number, { systemTurns }: Release): boolean =>
  role === "user" || role === "developer" || (systemTurns && role === "system" && at > 0);

const lastUserOf = (turns: readonly Turn[], model: Release): number =>
  turns.findLastIndex((turn, at) => isUser(turn, at, model));

/** Roles that stay when reasoning is dropped; an assistant's turn only loses it. */
const KEPT = ["user", "system", "latest_reminder", "direct_search_results", "assistant"];

function withoutOld(turns: readonly Turn[], model: Release): readonly Turn[] {
  const last = lastUserOf(turns, model);
  return turns.filter(({ role }, at) => at >= last || KEPT.includes(role));
}

function* turnText(turn: Turn, at: number, prompt: Prompt): Steps<string> {
  const { model } = prompt;
  const { message, role, blocks } = turn;
  const declared = (): string => declarations(message, (schemas) => text.toolsTextV4(schemas, model.tags));
  const content = (): string => contentText(message, BLANK, model.image);
  switch (role) {
    case "system":
      return (model.systemTurns && at > 0 ? text.SYSTEM : "") + content() + declared();
    case "developer":
      return text.USER + (content() || refuse("A developer message must have content")) + declared();
    case "user":
      return text.USER + (blocks ?? []).map((block) => block.text).join(BLANK);
    case "latest_reminder":
      return text.LATEST_REMINDER + content();
    case "assistant":
      return yield* assistantText(turn, content(), at, prompt);
  }
  return refuse(`The model's prompt format has no role '${role}'`);
}

function* assistantText({ message }: Turn, content: string, at: number, prompt: Prompt): Steps<string> {
  const { turns, thinking, drops, lastUser, model } = prompt;
  const calls = callsOf(message);
  // what answers a side task is printed without reasoning
  const reasons = thinking && turns[at - 1]?.task === undefined && (!drops || at > lastUser);
  return (
    (reasons ? reasoningOf(message) + text.THINK_END : "") +
    content +
    (calls.length === 0 ? "" : BLANK + (yield* callsText(calls, model.tags, model.argumentsOf))) +
    (truthy(field(message, "wo_eos")) ? "" : text.EOS)
  );
}

/** What opens the assistant's turn behind this one. */
function transition(turn: Turn, at: number, prompt: Prompt): string {
  const { turns, thinking, drops, lastUser, model, addGenerationPrompt } = prompt;
  const next = turns[at + 1]?.role;
  if (next === undefined ? !addGenerationPrompt : next !== "assistant" && next !== "latest_reminder") return "";
  if (turn.task !== undefined) {
    const token = text.TASKS.get(turn.task) ?? refuse(`The model knows no task '${turn.task}'`);
    return turn.task === "action" ? text.ASSISTANT + (thinking ? text.THINK : text.THINK_END) + token : token;
  }
  if (!isUser(turn, at, model)) return "";
  return text.ASSISTANT + (thinking && (!drops || at >= lastUser) ? text.THINK : text.THINK_END);
}
