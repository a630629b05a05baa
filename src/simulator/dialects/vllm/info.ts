import type { WireWriter } from "../../../protobuf/writer.ts";
import type { CoreOptions } from "../../core/options.ts";
import type { CoreLoad } from "../../core/step.ts";
import { CONNECTOR_NAMES, KV_ROLES } from "../../handover/transfer-params.ts";
import type { SimulatorHost } from "../../host.ts";

const VERSION = "0.32.0";

/** GetModelInfoResponse. */
export function modelInfo({ model }: SimulatorHost, w: WireWriter): void {
  w.text(1, model.path);
  w.uint(2, model.poolingDim === undefined ? 1 : 0);
  w.uint(3, model.contextLength);
  w.uint(4, model.vocabSize);
  w.text(6, model.servedName);
  w.text(7, model.path);
  w.text(8, model.modelType);
  for (const name of model.architectures) w.text(9, name);
  w.packedUint32(10, model.eosTokenIds);
  w.uint(11, model.padTokenId);
  w.uint(12, model.bosTokenId);
  w.uint(13, model.contextLength);
  w.text(14, model.defaultSamplingJson);
}

/** GetServerInfoResponse; members 1 to 5 stay empty, as the servicer leaves them. */
export function serverInfo(host: SimulatorHost, w: WireWriter): void {
  const { options } = host.ranks;
  const { pairing } = host;
  if (pairing?.connector) {
    w.text(6, CONNECTOR_NAMES[pairing.connector]);
    w.text(7, KV_ROLES[pairing.role]);
    w.text(8, pairing.engineId);
  }
  w.uint(9, host.ranks.size);
  w.text(11, "auto");
  w.uint(12, options.blockSize);
  w.text(14, "torch.bfloat16");
  w.uint(20, options.maxRunning);
  w.text(22, "bfloat16");
  w.text(23, host.waitsForReasoning ? "qwen3" : "");
  w.text(24, host.waitsForReasoning ? "after_reasoning" : "first_token");
}

/** GetLoadsResponse; asked-for ranks and sections are ignored. Old servicers tell rank 0 alone, with four figures. */
export function loads(host: SimulatorHost, w: WireWriter): void {
  const isOld = host.protocol === "0.4.14";
  const all = host.ranks.loads();
  const told = isOld ? all.slice(0, 1) : all;
  w.text(1, new Date().toISOString().replace("Z", "000+00:00"));
  w.text(2, VERSION);
  w.uint(3, told.length);
  for (const [rank, load] of told.entries()) {
    const mark = w.begin(4);
    rankFigures(w, rank, load, host.ranks.options, isOld);
    w.end(mark);
  }
}

function rankFigures(w: WireWriter, rank: number, load: CoreLoad, options: CoreOptions, isOld: boolean): void {
  const usage = load.blocksInUse / load.blocksTotal;
  const number = (field: number, value: number) => {
    if (value === 0) return;
    w.double(field, value);
  };
  w.uint(1, rank);
  w.uint(2, load.running);
  w.uint(3, load.waiting);
  w.uint(4, load.running + load.waiting);
  number(7, usage);
  if (isOld) return;
  w.uint(5, load.blocksInUse * options.blockSize);
  w.uint(6, load.blocksTotal * options.blockSize);
  number(8, load.throughput);
  number(9, load.hitRate);
  number(10, usage);
  w.uint(11, options.maxRunning);
  w.uint(12, load.waitingUncachedTokens);
}
