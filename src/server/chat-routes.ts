import { Elysia } from "elysia";
import { handleChat } from "../apis/chat/handle.ts";
import { chatRequest, chatResponse } from "../apis/chat/schema.ts";
import { errorResponse } from "../apis/openai/errors.ts";
import type { ServerContext } from "./context.ts";
import { eitherWay } from "./either-way.ts";
import { type Begin, bodyDetail, routeDetail } from "./route-parts.ts";

/** The route of OpenAI's Chat Completions. */
export function chatRoutes(context: ServerContext, begin: Begin) {
  const chat = eitherWay(
    { kind: "chatcmpl", endpoint: "/v1/chat/completions", schema: chatRequest, handle: handleChat },
    context,
    begin,
  );
  return new Elysia({ name: "collie-chat", normalize: false }).post(
    "/v1/chat/completions",
    ({ body, request, server }) => {
      server?.timeout(request, 0); // a long prefill is silent; an upload that stalls is not waited for
      return chat.answer(body, request);
    },
    {
      parse: chat.parse,
      detail: {
        ...routeDetail("OpenAI", errorResponse)(
          "Chat Completions",
          "OpenAI's Chat Completions with the sampling extensions of vLLM and SGLang. With `stream`, server-sent events.",
          chatResponse,
        ),
        ...bodyDetail(chatRequest),
      },
    },
  );
}
