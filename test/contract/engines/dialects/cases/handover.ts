/** Requests that are one half of a pair, as the engines are told. */
import { expect } from "bun:test";
import type { Handover } from "../../../../../src/engines/engine.ts";
import type { Case } from "../case.ts";

const MEETING: Handover = { kind: "bootstrap", host: "10.0.0.7", port: 8998, room: 2n ** 31n - 2n };
const SEEN_MEETING = { bootstrap_host: "10.0.0.7", bootstrap_port: 8998 };
const JSON_TEXT = '{"do_remote_decode":true,"do_remote_prefill":false}';

export const handoverCases: readonly Case[] = [
  {
    id: "handover",
    feature: "half of a request: prefill for another engine, or decode what one has prefilled",
    async run({ dialect, run, last }) {
      const isRelay = dialect === "vllm";
      const handover: Handover = isRelay ? { kind: "transfer", json: JSON_TEXT } : MEETING;
      const { error } = await run("RECITE it", {}, { handover });
      if (error?.kind === "invalid") return { refused: error.message };
      expect(error).toBeUndefined();
      const { extra } = last();
      if (isRelay) expect(extra["kv_transfer_params_json"]).toBe(JSON_TEXT);
      else {
        const told = (extra["disaggregated_params"] ?? extra["kv_bootstrap_info"]) as Record<string, unknown>;
        expect(told).toMatchObject(SEEN_MEETING);
        expect(String(told["bootstrap_room"])).toBe(String(2n ** 31n - 2n));
      }
      return "works";
    },
  },
];
