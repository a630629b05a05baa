import { WireReader } from "../../../protobuf/reader.ts";
import { defaultSampling, type Sampling } from "../../sampling.ts";

/** GenerateRequest of `vllm.grpc.engine`, decoded. Members that stay undefined were absent. */
export interface VllmGenerateRequest {
  requestId: string;
  inputIds: Uint32Array | undefined;
  text: string | undefined;
  sampling: Sampling;
  stream: boolean;
  kvTransferParamsJson: string | undefined;
  /** The older form of the parameters. */
  kvTransferParams: { readonly host: string; readonly port: number } | undefined;
  dataParallelRank: number | undefined;
  /** Element type of `mm_inputs.pixel_values`, when there are pixels. */
  pixelDtype: string | undefined;
  pixelTokens: number;
  mediaRefs: boolean;
}

/** Decodes a GenerateRequest; zeros that the servicer reads as "not set" are replaced. Throws WireError. */
export function decodeGenerateRequest(message: Uint8Array): VllmGenerateRequest {
  const out: VllmGenerateRequest = {
    requestId: "",
    inputIds: undefined,
    text: undefined,
    sampling: defaultSampling(),
    stream: false,
    kvTransferParamsJson: undefined,
    kvTransferParams: undefined,
    dataParallelRank: undefined,
    pixelDtype: undefined,
    pixelTokens: 0,
    mediaRefs: false,
  };
  const r = new WireReader(message);
  while (r.next()) {
    switch (r.field) {
      case 1:
        out.requestId = r.string();
        break;
      case 2:
        out.inputIds = tokenized(r.message());
        break;
      case 3:
        out.text = r.string();
        break;
      case 4:
        samplingParams(r.message(), out.sampling);
        break;
      case 5:
        out.stream = r.bool();
        break;
      case 6:
        out.kvTransferParams = remoteAddress(r.message());
        break;
      case 7:
        multimodal(r.message(), out);
        break;
      case 8:
        out.kvTransferParamsJson = r.string();
        break;
      case 9:
        out.dataParallelRank = r.int32();
        break;
      case 10:
        out.mediaRefs = true;
        r.skip();
        break;
      default:
        r.skip();
    }
  }
  return out;
}

function remoteAddress(r: WireReader): { host: string; port: number } {
  let host = "";
  let port = 0;
  while (r.next()) {
    if (r.field === 1) host = r.string();
    else if (r.field === 2) port = r.varint();
    else r.skip();
  }
  return { host, port };
}

/** TokenizedInput: its ids. */
export function tokenized(r: WireReader): Uint32Array {
  let ids: Uint32Array = new Uint32Array(0);
  while (r.next()) {
    if (r.field === 2) ids = r.uint32Array(ids);
    else r.skip();
  }
  return ids;
}

function samplingParams(r: WireReader, s: Sampling): void {
  while (r.next()) {
    switch (r.field) {
      case 1:
        s.temperature = float32(r);
        break;
      case 2:
        s.topP = float32(r) || 1;
        break;
      case 3:
        s.topK = r.varint();
        break;
      case 4:
        s.minP = float32(r);
        break;
      case 5:
        s.frequencyPenalty = float32(r);
        break;
      case 6:
        s.presencePenalty = float32(r);
        break;
      case 7:
        s.repetitionPenalty = float32(r) || 1;
        break;
      case 8:
        s.maxTokens = r.varint();
        break;
      case 9:
        s.minTokens = r.varint();
        break;
      case 10:
        s.stop.push(r.string());
        break;
      case 11:
        r.uint32s(s.stopTokenIds);
        break;
      case 12:
        s.skipSpecialTokens = r.bool();
        break;
      case 13:
        s.spacesBetweenSpecialTokens = r.bool();
        break;
      case 14:
        s.ignoreEos = r.bool();
        break;
      case 15:
        s.n = r.varint() || 1;
        break;
      case 16:
        s.constraint = { kind: "json_schema", value: r.string(), choices: [] };
        break;
      case 17:
        s.constraint = { kind: "regex", value: r.string(), choices: [] };
        break;
      case 18:
        s.constraint = { kind: "grammar", value: r.string(), choices: [] };
        break;
      case 19:
        s.constraint = { kind: "structural_tag", value: r.string(), choices: [] };
        break;
      case 20:
        s.constraint = { kind: "json_object", value: String(r.bool()), choices: [] };
        break;
      case 21:
        s.constraint = { kind: "choice", value: "", choices: texts(r.message(), 1) };
        break;
      case 22:
        s.logprobs = r.int32();
        break;
      case 23:
        s.promptLogprobs = r.int32();
        break;
      case 24:
        s.seed = r.int32();
        break;
      case 25:
        s.includeStopStrInOutput = r.bool();
        break;
      case 26:
        s.logitBias.push(biasEntry(r.message()));
        break;
      case 27:
        s.truncatePromptTokens = r.int32();
        break;
      default:
        r.skip();
    }
  }
}

/** A float as the shortest decimal that means the same, so that 0.7 is shown as 0.7. */
function float32(r: WireReader): number {
  return Number(r.float().toPrecision(7));
}

function texts(r: WireReader, field: number): string[] {
  const out: string[] = [];
  while (r.next()) {
    if (r.field === field) out.push(r.string());
    else r.skip();
  }
  return out;
}

function biasEntry(r: WireReader): [number, number] {
  let id = 0;
  let bias = 0;
  while (r.next()) {
    if (r.field === 1) id = r.int32();
    else if (r.field === 2) bias = float32(r);
    else r.skip();
  }
  return [id, bias];
}

function multimodal(r: WireReader, out: VllmGenerateRequest): void {
  while (r.next()) {
    if (r.field === 2) {
      out.pixelDtype = "";
      const tensor = r.message();
      while (tensor.next()) {
        if (tensor.field === 3) out.pixelDtype = tensor.string();
        else tensor.skip();
      }
    } else if (r.field === 5) {
      const range = r.message();
      while (range.next()) {
        if (range.field === 2) out.pixelTokens = range.varint();
        else range.skip();
      }
    } else r.skip();
  }
}
