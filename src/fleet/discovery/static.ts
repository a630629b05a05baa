import type { WorkerSource } from "../worker-source.ts";
import type { WorkerSpec } from "../worker-spec.ts";
import { urlOf, workerAddress } from "../worker-url.ts";

/** Workers of the command line: they are told of once. */
export function staticSource(specs: readonly WorkerSpec[]): WorkerSource {
  return {
    name: "static",
    start(sink) {
      const workers = new Map(
        specs.map((spec) => {
          const address = workerAddress(spec.url);
          return [address.place, { ...spec, url: urlOf(address) }];
        }),
      );
      sink.replace([...workers].map(([key, spec]) => ({ key, spec })));
    },
  };
}
