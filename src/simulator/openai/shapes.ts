import type { SaidToken, TextAnswer, TextChoice } from "./answer.ts";

type Members = Record<string, unknown>;

/** How an endpoint words its answers. */
export interface AnswerShape {
  /** `object` of a whole answer, and of an event. */
  readonly object: string;
  readonly eventObject: string;
  /** A choice of a whole answer; `rest` are members that all endpoints have. */
  choice(answer: TextAnswer, own: TextChoice, said: readonly SaidToken[], rest: Members): Members;
  /** What an event says of a choice: `text` is new. */
  delta(answer: TextAnswer, own: TextChoice, text: string, said: readonly SaidToken[], rest: Members): Members;
}

/** `/v1/chat/completions`. */
export const chatShape: AnswerShape = {
  object: "chat.completion",
  eventObject: "chat.completion.chunk",
  choice(answer, own, said, rest) {
    const { tool } = answer.request;
    const call = {
      id: `call_${answer.id}_${own.index}`,
      type: "function",
      function: { name: tool, arguments: own.text },
    };
    const message = tool === undefined ? { content: own.text } : { content: null, tool_calls: [call] };
    return { index: own.index, message: { role: "assistant", ...message }, logprobs: chatLogprobs(said), ...rest };
  },
  delta(answer, own, text, said, rest) {
    const { tool } = answer.request;
    const role = own.isNew ? { role: "assistant" } : {};
    const first = own.isNew ? { id: `call_${answer.id}_${own.index}`, type: "function" } : {};
    const name = own.isNew ? { name: tool } : {};
    const call = { index: 0, ...first, function: { ...name, arguments: text } };
    const words = text === "" && !own.isNew ? {} : tool === undefined ? { content: text } : { tool_calls: [call] };
    return { index: own.index, delta: { ...role, ...words }, logprobs: chatLogprobs(said), ...rest };
  },
};

/** `/v1/completions`. */
export const completionShape: AnswerShape = {
  object: "text_completion",
  eventObject: "text_completion",
  choice: (_answer, own, said, rest) => ({
    index: own.index,
    text: own.text,
    logprobs: completionLogprobs(said, 0),
    ...rest,
  }),
  delta: (_answer, own, text, said, rest) => ({
    index: own.index,
    text,
    logprobs: completionLogprobs(said, own.text.length - said.reduce((sum, token) => sum + token.text.length, 0)),
    ...rest,
  }),
};

function chatLogprobs(said: readonly SaidToken[]): unknown {
  if (said.length === 0) return null;
  const bytes = (text: string) => [...Buffer.from(text, "utf8")];
  return {
    content: said.map(({ text, id, row }) => ({
      token: text,
      logprob: row.logprob,
      bytes: bytes(text),
      // The rows are made up, and only the said token has a known text.
      top_logprobs: row.topIds.map((topId, i) => {
        const token = topId === id ? text : `token_id:${topId}`;
        return { token, logprob: row.topLogprobs[i], bytes: bytes(token) };
      }),
    })),
  };
}

function completionLogprobs(said: readonly SaidToken[], offset: number): unknown {
  if (said.length === 0) return null;
  let at = offset;
  return {
    text_offset: said.map(({ text }) => (at += text.length) - text.length),
    token_logprobs: said.map(({ row }) => row.logprob),
    tokens: said.map(({ text }) => text),
    top_logprobs: said.map(({ text, id, row }) =>
      Object.fromEntries(row.topIds.map((topId, i) => [topId === id ? text : `token_id:${topId}`, row.topLogprobs[i]])),
    ),
  };
}
