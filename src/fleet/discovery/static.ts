import type { WorkerSource } from "../worker-source.ts";
import { urlOf, workerAddress } from "../worker-url.ts";

/** Workers of the command line: they are told of once. */
export function staticSource(urls: readonly string[]): WorkerSource {
  return {
    name: "static",
    start(sink) {
      const places = new Map(urls.map((url) => [workerAddress(url).place, urlOf(workerAddress(url))]));
      sink.replace([...places].map(([key, url]) => ({ key, spec: { url } })));
    },
  };
}
