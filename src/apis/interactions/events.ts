/** The events of an interaction: those of one that is on its way, and the same of one that was stored. */
import { rawItemTexts, rawMemberText } from "../../generation/raw-members.ts";
import type { EventWriter } from "../shared/events.ts";
import type { TurnItem } from "../shared/turn.ts";
import { partialOf } from "./object.ts";
import type { Loose } from "./schema.ts";

/**
 * How far a stream has come, which an `event_id` says: `sequence.step.offset`. `sequence` numbers the events from 0. All steps before
 * `step` are told; of this one, with an offset of 0, nothing is, with 1 its start, and with 1 + n also n characters of its text; the
 * signature of a thought counts as one more. Behind all steps is the end, in the place of a
 * number: 0 its error, 1 the end of all.
 */
export interface Position {
  readonly sequence: number;
  /** Infinity: the end. */
  readonly step: number;
  readonly offset: number;
}

/** Undefined: no event of ours has this id. */
export function positionOf(eventId: string): Position | undefined {
  const found = /^(\d{1,9})\.(\d{1,9}|end)\.(\d{1,9})$/.exec(eventId);
  if (found === null) return undefined;
  const [, sequence, step, offset] = found;
  const at = step === "end" ? Number.POSITIVE_INFINITY : Number(step);
  return { sequence: Number(sequence), step: at, offset: Number(offset) };
}

type StepKind = TurnItem["kind"];

/** What comes before and behind the JSON of a delta's text. */
const DELTAS: Readonly<Record<StepKind, readonly [string, string]>> = {
  text: ['{"type":"text","text":', '},"event_id":"'],
  reasoning: ['{"type":"thought_summary","content":{"type":"text","text":', '}},"event_id":"'],
  call: ['{"type":"arguments_delta","arguments":', '},"event_id":"'],
};

/** Writes events with their ids. One step is open at a time. */
export class InteractionEvents {
  private step = 0;
  private deltaHead = "";
  private deltaTail = "";
  private idTail = "";

  /** `sequence`: the number of the first event. */
  constructor(
    private readonly out: EventWriter,
    private sequence = 0,
  ) {}

  created(interaction: Loose): void {
    this.event("interaction.created", `"interaction":${JSON.stringify(interaction)}`, 0, 0);
  }

  /** `opening`: JSON text of the step; undefined: its start was told before. */
  start(at: number, kind: StepKind, opening: string | undefined): void {
    this.step = at;
    const [head, tail] = DELTAS[kind];
    this.deltaHead = `{"event_type":"step.delta","index":${at},"delta":${head}`;
    this.deltaTail = tail;
    this.idTail = `.${at}.`;
    if (opening !== undefined) this.event("step.start", `"index":${at},"step":${opening}`, at, 1);
  }

  /** `told`: characters of the step's text with these. */
  delta(text: string, told: number): void {
    const sequence = this.sequence++;
    const id = `${sequence}${this.idTail}${1 + told}`;
    this.out.event("step.delta", `${this.deltaHead}${JSON.stringify(text)}${this.deltaTail}${id}"}`, sequence);
  }

  /** `told`: characters of the thought's summary. */
  signature(signature: string, told: number): void {
    const delta = `{"type":"thought_signature","signature":${JSON.stringify(signature)}}`;
    this.event("step.delta", `"index":${this.step},"delta":${delta}`, this.step, 2 + told);
  }

  stop(): void {
    this.event("step.stop", `"index":${this.step}`, this.step + 1, 0);
  }

  /** The last events. `after`: what was told before. */
  end(interaction: Loose, after?: Pick<Position, "step" | "offset">): void {
    const [error] = interaction["status"] === "failed" ? (interaction["errors"] as readonly unknown[]) : [];
    const told = after?.step === Number.POSITIVE_INFINITY ? after.offset : -1;
    if (error !== undefined && told < 0) this.event("error", `"error":${JSON.stringify(error)}`, "end", 0);
    if (told < 1) this.event("interaction.completed", `"interaction":${JSON.stringify(interaction)}`, "end", 1);
  }

  private event(type: string, members: string, step: number | "end", offset: number): void {
    const sequence = this.sequence++;
    this.out.event(type, `{"event_type":"${type}",${members},"event_id":"${sequence}.${step}.${offset}"}`, sequence);
  }
}

/** A step of a stored interaction. */
interface ToldStep {
  readonly kind: StepKind;
  readonly opening: string;
  readonly text: string;
  readonly signature: string | undefined;
}

/**
 * Tells of an interaction that is over, from its start or behind an event: one delta for all of a step's text that is left. `body`: JSON
 * text of the object.
 */
export function replayInteraction(body: string, after: Position | undefined, out: EventWriter): void {
  const interaction = partialOf(JSON.parse(body) as Loose);
  const steps = rawItemTexts(rawMemberText(body, "steps") ?? "[]").map(toldStep);
  const events = new InteractionEvents(out, after === undefined ? 0 : after.sequence + 1);
  const { status: _, usage: __, errors: ___, ...begun } = interaction;
  if (after === undefined) events.created({ ...begun, status: "in_progress", updated: begun["created"] });
  const from = after ?? { step: 0, offset: 0 };
  steps.slice(from.step).forEach((step, i) => {
    const at = from.step + i;
    retell(step, at, at === from.step ? from.offset : 0, events);
  });
  events.end(interaction, from);
}

function retell(
  { kind, opening, text, signature }: ToldStep,
  at: number,
  offset: number,
  events: InteractionEvents,
): void {
  events.start(at, kind, offset === 0 ? opening : undefined);
  const told = Math.max(offset - 1, 0);
  if (told < text.length) events.delta(text.slice(told), text.length);
  if (signature !== undefined && offset < text.length + 2) events.signature(signature, text.length);
  events.stop();
}

function toldStep(json: string): ToldStep {
  const step = JSON.parse(json) as {
    readonly type: string;
    readonly content?: readonly { readonly text: string }[];
    readonly summary?: readonly { readonly text: string }[];
    readonly signature?: string;
  };
  const textIn = (parts: readonly { readonly text: string }[] = []) => parts.map(({ text }) => text).join("");
  const none = { signature: undefined };
  if (step.type === "model_output")
    return { ...none, kind: "text", opening: '{"type":"model_output","content":[]}', text: textIn(step.content) };
  if (step.type === "thought")
    return {
      kind: "reasoning",
      opening: '{"type":"thought","summary":[]}',
      text: textIn(step.summary),
      signature: step.signature,
    };
  return {
    ...none,
    kind: "call",
    opening: JSON.stringify({ ...step, arguments: {} }),
    text: rawMemberText(json, "arguments") ?? "{}",
  };
}
