/** The texts of the dialects' messages and calls. They use the same message names with other numbers, so each is a world of its own. */
import commonText from "../../proto/common.proto" with { type: "text" };
import mlxText from "../../proto/mlx_engine.proto" with { type: "text" };
import sglangText from "../../proto/sglang_scheduler.proto" with { type: "text" };
import tokenspeedText from "../../proto/tokenspeed_scheduler.proto" with { type: "text" };
import trtllmText from "../../proto/trtllm_service.proto" with { type: "text" };
import vllmText from "../../proto/vllm_engine.proto" with { type: "text" };
import { ProtoText } from "../protobuf/proto-text.ts";

export const commonProto = new ProtoText(commonText);

/** By the names of the dialects. */
export const PROTOS = {
  vllm: new ProtoText(vllmText, [commonProto]),
  sglang: new ProtoText(sglangText, [commonProto]),
  tokenspeed: new ProtoText(tokenspeedText, [commonProto]),
  trtllm: new ProtoText(trtllmText, [commonProto]),
  mlx: new ProtoText(mlxText, [commonProto]),
} as const;
