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
import { readJson } from "./body.ts";
import type { RequestScope } from "./request-scope.ts";

const json = (description: string, schema: object) => ({ description, content: { "application/json": { schema } } });
const detail = (summary: string, description: string, answer: object) => ({
  tags: ["Parsers"],
  summary,
  description,
  responses: {
    200: json("The answer", answer),
    "4XX": json("The request is wrong", errorResponse),
    "5XX": json("It could not be served", errorResponse),
  },
});

/** Routes of the parsers. `begin` gives the scope of a request, and finishes it if the request fails before it is handled. */
export function parseRoutes(maxPayloadSize: number, begin: (request: Request) => RequestScope) {
  const parse = ({ request }: { request: Request }) => {
    begin(request);
    return readJson(request, maxPayloadSize);
  };
  const callsAs = (draw: Draw) => {
    return ({ body, request }: { body: typeof functionCallRequest.static; request: Request }) =>
      handleFunctionCall(body, begin(request), draw);
  };
  const reasoningAs = (draw: Draw) => {
    return ({ body, request }: { body: typeof reasoningRequest.static; request: Request }) =>
      handleReasoning(body, begin(request), draw);
  };

  return new Elysia({ name: "collie-parse", normalize: false })
    .post("/parse/function_call", callsAs(smgCalls), {
      parse,
      body: functionCallRequest,
      detail: detail(
        "Tool calls of a text",
        "SMG's form. A call that is cut off is listed as far as it goes; `success` is false then.",
        functionCallResponse,
      ),
    })
    .post("/parse/reasoning", reasoningAs(smgReasoning), {
      parse,
      body: reasoningRequest,
      detail: detail(
        "Reasoning of a text",
        "SMG's form. Text without an opening marker is reasoning if models of this kind begin in it.",
        reasoningResponse,
      ),
    })
    .post("/parse_function_call", callsAs(sglangCalls), {
      parse,
      body: functionCallRequest,
      detail: detail("Tool calls of a text, as from SGLang", "The same in SGLang's form.", sglangCallsResponse),
    })
    .post("/separate_reasoning", reasoningAs(sglangReasoning), {
      parse,
      body: reasoningRequest,
      detail: detail("Reasoning of a text, as from SGLang", "The same in SGLang's form.", sglangReasoningResponse),
    });
}
