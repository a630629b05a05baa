/** Answers with tool calls, whole or streamed, in one form. */
export type ChatBody = Readonly<Record<string, unknown>>;

export interface ToolAnswer {
  readonly status: number;
  readonly error: string | undefined;
  readonly choices: readonly {
    readonly content: string | null;
    /** `text`: arguments of a function, input of a custom tool. */
    readonly calls: readonly { readonly name: string; readonly text: string }[];
    readonly finishReason: string | null;
  }[];
}

interface Piece {
  readonly content?: string | null;
  readonly tool_calls?: readonly {
    readonly index?: number;
    readonly function?: { readonly name?: string; readonly arguments?: string };
    readonly custom?: { readonly name?: string; readonly input?: string };
  }[];
}
interface Frame {
  readonly choices: readonly {
    readonly index: number;
    readonly message?: Piece;
    readonly delta?: Piece;
    readonly finish_reason: string | null;
  }[];
  readonly error?: { readonly message: string };
}

/** Asks a Chat Completions server. */
export async function readCalls(base: string, body: ChatBody, stream: boolean): Promise<ToolAnswer> {
  const response = await fetch(`${base}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ ...body, stream }),
    signal: AbortSignal.timeout(120_000),
  });
  const sent = await response.text();
  const isStream = stream && response.status === 200;
  const texts = isStream ? [...sent.matchAll(/^data: (\{.*\})$/gm)].map(([, text]) => text!) : [sent];
  const frames = texts.map((text) => JSON.parse(text) as Frame);
  const choices: { content: string | null; calls: { name: string; text: string }[]; finishReason: string | null }[] =
    [];
  for (const { index, message, delta, finish_reason } of frames.flatMap((frame) => frame.choices ?? [])) {
    choices[index] ??= { content: null, calls: [], finishReason: null };
    const choice = choices[index];
    const { content, tool_calls: calls = [] } = message ?? delta ?? {};
    if (content) choice.content = (choice.content ?? "") + content;
    calls.forEach((call, i) => {
      const at = call.index ?? i;
      choice.calls[at] ??= { name: "", text: "" };
      choice.calls[at].name += call.function?.name ?? call.custom?.name ?? "";
      choice.calls[at].text += call.function?.arguments ?? call.custom?.input ?? "";
    });
    choice.finishReason ??= finish_reason;
  }
  return { status: response.status, error: frames.find(({ error }) => error)?.error?.message, choices };
}
