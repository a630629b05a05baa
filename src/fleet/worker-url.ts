/** Addresses of workers: one spelling for one worker. */
import { parseWorkerAddress, WORKER_ADDRESS_HELP, type WorkerAddress } from "../config/worker-address.ts";
import { InvalidRequestError } from "../errors.ts";

/** Throws InvalidRequestError for what is none. */
export function workerAddress(url: string): WorkerAddress {
  const address = parseWorkerAddress(url);
  if (address !== undefined) return address;
  throw new InvalidRequestError(
    `${JSON.stringify(url.slice(0, 200).replace(/\/\/.*@/, "//...@"))} is no address of a worker ${WORKER_ADDRESS_HELP}`,
    { param: "url" },
  );
}

export const urlOf = ({ scheme, place }: WorkerAddress): string =>
  scheme === undefined ? place : `${scheme}://${place}`;
