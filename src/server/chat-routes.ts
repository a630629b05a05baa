import { Elysia } from "elysia";
import { handleChat } from "../apis/chat/handle.ts";
import { chatRequest, chatResponse } from "../apis/chat/schema.ts";
import { errorResponse } from "../apis/openai/errors.ts";
import type { ServerContext } from "./context.ts";
import { contextOf } from "./rehearsal.ts";
import { type Begin, jsonBody, routeDetail } from "./route-parts.ts";

/** The route of OpenAI's Chat Completions. */
export function chatRoutes(context: ServerContext, begin: Begin) {
  return new Elysia({ name: "collie-chat", normalize: false }).post(
    "/v1/chat/completions",
    ({ body, request, server }) => {
      server?.timeout(request, 0); // a long prefill is silent; an upload that stalls is not waited for
      return handleChat(body, contextOf(request, context), begin(request, "chatcmpl"));
    },
    {
      parse: jsonBody(begin, "chatcmpl", context, chatRequest),
      body: chatRequest,
      detail: routeDetail("OpenAI", errorResponse)(
        "Chat Completions",
        "OpenAI's Chat Completions with the sampling extensions of vLLM and SGLang. With `stream`, server-sent events.",
        chatResponse,
      ),
    },
  );
}
