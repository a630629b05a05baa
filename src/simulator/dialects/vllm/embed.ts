import { GrpcStatus } from "../../../engines/grpc-error.ts";
import { WireReader } from "../../../protobuf/reader.ts";
import { WireError } from "../../../protobuf/wire-error.ts";
import { WireWriter } from "../../../protobuf/writer.ts";
import { embeddingRecord, startEmbedding } from "../../embedding.ts";
import type { GrpcMethod } from "../../grpc/server.ts";
import type { SimulatorHost } from "../../host.ts";
import { promptProblem } from "./checks.ts";
import { tokenized } from "./request.ts";

const writer = new WireWriter();

interface EmbedRequest {
  requestId: string;
  /** Undefined: there was no tokenized input. */
  input: Uint32Array | undefined;
}

function decode(message: Uint8Array): EmbedRequest {
  const out: EmbedRequest = { requestId: "", input: undefined };
  const r = new WireReader(message);
  while (r.next()) {
    if (r.field === 1) out.requestId = r.string();
    else if (r.field === 2) out.input = tokenized(r.message());
    else r.skip();
  }
  return out;
}

/** Embed: refused by a server that generates, as vLLM does. */
export function embed(host: SimulatorHost): GrpcMethod {
  const { model } = host;
  return (call, message) => {
    let request: EmbedRequest;
    try {
      request = decode(message);
    } catch (error) {
      if (error instanceof WireError) return call.end(GrpcStatus.INTERNAL, "Exception deserializing request!");
      throw error;
    }
    const { requestId, input: prompt } = request;
    const dimensions = model.poolingDim;
    const refuse = (problem: string, given: Uint32Array = new Uint32Array(0)) => {
      embeddingRecord(host, { requestId, prompt: given }, call, "refused", problem);
      call.end(GrpcStatus.INVALID_ARGUMENT, problem);
    };
    if (prompt === undefined) return refuse("EmbedRequest requires tokenized input");
    if (dimensions === undefined) return refuse("This model does not support pooling", prompt);
    const problem = promptProblem(prompt, model);
    if (problem !== undefined) return refuse(problem, prompt);
    startEmbedding(host, { requestId, prompt, dimensions }, call, (vector) => {
      const w = writer.reset();
      w.packedFloats(1, vector);
      w.uint(2, prompt.length);
      w.uint(3, vector.length);
      call.send(w.written());
    });
  };
}
