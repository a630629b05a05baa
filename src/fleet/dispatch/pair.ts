import { dialectByName } from "../../engines/dialects.ts";
import { UnsupportedError } from "../../errors.ts";
import type { LeasePair } from "../lease.ts";
import type { FleetView } from "../view.ts";
import type { Tries, Try } from "./attempt.ts";
import { MeetingPair } from "./pair-meeting.ts";
import { RelayPair } from "./pair-relay.ts";

/** A try at two workers, as their engines do it. Throws UnsupportedError where they don't, and gives the places back. */
export function pairTry(tries: Tries, fleet: FleetView, places: LeasePair): Try {
  const { prefill, decode } = places;
  const { dialect, model } = prefill.worker;
  const pairing = decode.worker.dialect === dialect ? dialectByName(dialect)?.pairing : undefined;
  if (pairing === undefined) {
    for (const place of [prefill, decode]) place.done("neutral");
    throw new UnsupportedError(`The engines of the model '${model}' cannot prefill for one another`);
  }
  if (pairing.kind === "relay") return new RelayPair(tries, fleet, places);
  return new MeetingPair(tries, fleet, places, pairing.rooms);
}
