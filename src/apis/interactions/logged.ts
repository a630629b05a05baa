/** Steps of an interaction by the events in its log, where nobody has stored its end. */
import { memberText } from "../../history/json-text.ts";
import type { LoggedOutput, LostKind } from "../shared/lost-run.ts";

interface OpenStep {
  readonly opening: string;
  text: string;
  signature: string;
}

interface Delta {
  readonly type: string;
  readonly text?: string;
  readonly arguments?: string;
  readonly signature?: string;
  readonly content?: { readonly text: string };
}

class LoggedSteps implements LoggedOutput {
  private readonly whole: string[] = [];
  private open: OpenStep | undefined;

  add(json: string): void {
    if (json.startsWith('{"event_type":"step.start"'))
      this.open = { opening: memberText(json, "step") ?? "{}", text: "", signature: "" };
    else if (json.startsWith('{"event_type":"step.delta"')) this.change(JSON.parse(json) as { readonly delta: Delta });
    else if (json.startsWith('{"event_type":"step.stop"')) {
      if (this.open !== undefined) this.whole.push(closed(this.open));
      this.open = undefined;
    }
  }

  /** JSON texts. Of a step that did not end only text counts: half a call is none, and a thought needs its signature. */
  output(): readonly string[] {
    const { open, whole } = this;
    return open?.opening.startsWith('{"type":"model_output"') === true ? [...whole, closed(open)] : whole;
  }

  private change({ delta }: { readonly delta: Delta }): void {
    if (this.open === undefined) return;
    this.open.text += delta.text ?? delta.arguments ?? delta.content?.text ?? "";
    this.open.signature += delta.signature ?? "";
  }
}

export const LOST_INTERACTION: LostKind = {
  kind: "interaction",
  logged: () => new LoggedSteps(),
  draw: (body, { status, message }) => ({
    ...body,
    status,
    updated: new Date().toISOString(),
    ...(status === "failed" && { errors: [{ code: "INTERNAL", message }] }),
  }),
  member: "steps",
  hasIds: false,
};

function closed({ opening, text, signature }: OpenStep): string {
  const part = `{"type":"text","text":${JSON.stringify(text)}}`;
  if (opening.startsWith('{"type":"model_output"')) return `{"type":"model_output","content":[${part}]}`;
  if (opening.startsWith('{"type":"thought"'))
    return `{"type":"thought","signature":${JSON.stringify(signature)},"summary":[${text === "" ? "" : part}]}`;
  return `${opening.slice(0, opening.lastIndexOf(',"arguments":'))},"arguments":${text === "" ? "{}" : text}}`;
}
