/** The two messages of the vLLM dialect that are on the token path. */
export { bestRows, GenerateResponseDecoder, type ResponseKind } from "./decode.ts";
export { encodeGenerateRequest, logprobRowsToAsk, MAX_LOGPROB_ROWS } from "./encode.ts";
