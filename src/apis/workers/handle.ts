import { InvalidRequestError } from "../../errors.ts";
import { isKeyless, parsePatch, parseSpec } from "../../fleet/spec-json.ts";
import type { ServerContext } from "../../server/context.ts";
import { workerList, workerObject } from "./objects.ts";

type Context = Pick<ServerContext, "control">;

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

function checkedId(id: string): string {
  if (!UUID.test(id)) throw new InvalidRequestError(`'${id.slice(0, 100)}' is no id of a worker: it must be a UUID`);
  return id.toLowerCase();
}

/** What a change that is under way is answered with. */
export interface Accepted {
  readonly status: "accepted";
  readonly worker_id: string;
  readonly url?: string;
  readonly location?: string;
  readonly message: string;
}

const accepted = (id: string, message: string): Accepted => ({ status: "accepted", worker_id: id, message });

export async function listWorkers(model: string | undefined, { control }: Context): Promise<object> {
  return workerList(await control.admin.listWorkers(model));
}

export async function getWorker(id: string, { control }: Context): Promise<object> {
  return workerObject(await control.admin.worker(checkedId(id)));
}

export async function addWorker(body: unknown, { control }: Context): Promise<Required<Accepted>> {
  const { id, url } = await control.admin.addWorker(parseSpec(body));
  const message = "The worker is being added: job_status of its location tells how that goes";
  return { status: "accepted", worker_id: id, url, location: `/workers/${id}`, message };
}

export async function replaceWorker(id: string, body: unknown, { control }: Context): Promise<Accepted> {
  await control.admin.replaceWorker(checkedId(id), parseSpec(body), isKeyless(body));
  return accepted(id, "The worker is being replaced: it serves as it was until its replacement is ready");
}

export async function patchWorker(id: string, body: unknown, { control }: Context): Promise<Accepted> {
  await control.admin.patchWorker(checkedId(id), parsePatch(body));
  return accepted(id, "The worker has been changed");
}

export async function removeWorker(id: string, { control }: Context): Promise<Accepted> {
  await control.admin.removeWorker(checkedId(id));
  return accepted(id, "The worker is being removed: it leaves when its requests are done");
}
