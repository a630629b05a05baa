import type { TSchema } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { errorResponse } from "../apis/openai/errors.ts";
import {
  type Draw,
  handleFunctionCall,
  handleReasoning,
  sglangCalls,
  sglangReasoning,
  smgCalls,
  smgReasoning,
} from "../apis/parse/handle.ts";
import {
  functionCallRequest,
  functionCallResponse,
  reasoningRequest,
  reasoningResponse,
  sglangCallsResponse,
  sglangReasoningResponse,
} from "../apis/parse/schema.ts";
import type { ServerContext } from "./context.ts";
import { type Begin, jsonBody, routeDetail } from "./route-parts.ts";

const detail = routeDetail("Parsers", errorResponse);

/** Routes of the parsers. */
export function parseRoutes(context: Pick<ServerContext, "config">, begin: Begin) {
  const parse = (schema: TSchema) => jsonBody(begin, "req", context, schema);
  const callsAs = (draw: Draw) => {
    return ({ body, request }: { body: typeof functionCallRequest.static; request: Request }) =>
      handleFunctionCall(body, begin(request, "req"), draw);
  };
  const reasoningAs = (draw: Draw) => {
    return ({ body, request }: { body: typeof reasoningRequest.static; request: Request }) =>
      handleReasoning(body, begin(request, "req"), draw);
  };

  return new Elysia({ name: "collie-parse", normalize: false })
    .post("/parse/function_call", callsAs(smgCalls), {
      parse: parse(functionCallRequest),
      body: functionCallRequest,
      detail: detail(
        "Tool calls of a text",
        "SMG's form. A call that is cut off is listed as far as it goes; `success` is false then.",
        functionCallResponse,
      ),
    })
    .post("/parse/reasoning", reasoningAs(smgReasoning), {
      parse: parse(reasoningRequest),
      body: reasoningRequest,
      detail: detail(
        "Reasoning of a text",
        "SMG's form. Text without an opening marker is reasoning if models of this kind begin in it.",
        reasoningResponse,
      ),
    })
    .post("/parse_function_call", callsAs(sglangCalls), {
      parse: parse(functionCallRequest),
      body: functionCallRequest,
      detail: detail("Tool calls of a text, as from SGLang", "The same in SGLang's form.", sglangCallsResponse),
    })
    .post("/separate_reasoning", reasoningAs(sglangReasoning), {
      parse: parse(reasoningRequest),
      body: reasoningRequest,
      detail: detail("Reasoning of a text, as from SGLang", "The same in SGLang's form.", sglangReasoningResponse),
    });
}
