/**
 * The two calls of the hub's HTTP API that a model's files need (https://huggingface.co/docs/hub/api):
 *
 *     GET /api/models/ID/revision/REVISION?blobs=true   the commit and its files
 *     GET /ID/resolve/COMMIT/NAME                       a file; large ones by a redirect to another host
 */
import { createHash } from "node:crypto";
import { isCommit, isEtag, type SnapshotFile } from "./cache.ts";
import { HubError } from "./hub-error.ts";
import type { HubSettings } from "./settings.ts";
import { type Repository, repositoryText } from "./source.ts";
import { type Received, type TransferOptions, TransientError, transfer } from "./transfer.ts";

/** Largest file, and the most for all files of a model, bytes. */
export const MOST_FILE_BYTES = 200 << 20;
export const MOST_MODEL_BYTES = 500 << 20;
const MOST_LIST_BYTES = 64 << 20;
const LIST_MS = 120_000;
const FILE_MS = 15 * 60_000;

/** A file as the hub lists it. What a mirror leaves out is undefined. */
export interface ListedFile {
  readonly name: string;
  readonly size: number | undefined;
  /** Git's id of the blob: the etag of a small file. */
  readonly blobId: string | undefined;
  /** Of a large file (LFS): its etag. */
  readonly sha256: string | undefined;
}

export interface Listing {
  readonly commit: string;
  readonly files: readonly ListedFile[];
}

type Target = { readonly repository: Repository; readonly settings: HubSettings };

/** Asks for the commit of a repository's revision and for its files. Throws `HubError`. */
export function listFiles(target: Target, options: TransferOptions): Promise<Listing> {
  const { repository, settings } = target;
  const url = `${settings.endpoint}/api/models/${repository.id}/revision/${encodeURIComponent(repository.revision)}?blobs=true`;
  const limits = { silenceMs: settings.etagTimeoutMs, totalMs: LIST_MS, bytes: MOST_LIST_BYTES };
  return transfer(url, limits, options, (received) => {
    refuse(received, target, "the repository");
    const listing = parseListing(received.body);
    if (!listing)
      throw new HubError(
        "broken",
        `${settings.endpoint} answers, but not as a hub does: is HF_ENDPOINT right, and is there no login page of a proxy before it?`,
      );
    return listing;
  });
}

function parseListing(body: Uint8Array): Listing | undefined {
  let json: unknown;
  try {
    json = JSON.parse(new TextDecoder().decode(body));
  } catch {
    return undefined;
  }
  const { sha, siblings } = (json ?? {}) as { sha?: unknown; siblings?: unknown };
  if (!isCommit(sha) || !Array.isArray(siblings)) return undefined;
  return { commit: sha, files: siblings.flatMap(parseFile) };
}

function parseFile(entry: unknown): ListedFile[] {
  const { rfilename, size, blobId, lfs } = (entry ?? {}) as Record<string, unknown>;
  if (typeof rfilename !== "string") return [];
  const large = (lfs ?? {}) as { sha256?: unknown; size?: unknown };
  return [
    {
      name: rfilename,
      size: [large.size, size].find((each) => typeof each === "number"),
      blobId: typeof blobId === "string" && /^[0-9a-f]{40}$/.test(blobId) ? blobId : undefined,
      sha256: isSha256(large.sha256) ? large.sha256 : undefined,
    },
  ];
}

const isSha256 = (text: unknown): text is string => typeof text === "string" && /^[0-9a-f]{64}$/.test(text);

/** Fetches a file of a commit and checks size and digest. Throws `HubError`. */
export function fetchFile(
  target: Target,
  commit: string,
  file: ListedFile,
  options: TransferOptions,
): Promise<SnapshotFile> {
  const { repository, settings } = target;
  const path = file.name.split("/").map(encodeURIComponent).join("/");
  const url = `${settings.endpoint}/${repository.id}/resolve/${commit}/${path}`;
  const limits = { silenceMs: settings.downloadTimeoutMs, totalMs: FILE_MS, bytes: MOST_FILE_BYTES };
  return transfer(url, limits, options, (received) => {
    refuse(received, target, file.name);
    const etag = etagOf(received) ?? file.sha256 ?? file.blobId;
    const from = header(received, "X-Repo-Commit");
    if (etag === undefined || (from !== undefined && from !== commit))
      throw new HubError(
        "broken",
        `${settings.endpoint} does not send ${file.name} as a hub does (no etag, or of another commit)`,
      );
    checkContent(file, etag, received);
    return { name: file.name, etag, bytes: received.body };
  });
}

/** The last value of a header on the way: the hub puts them on its redirect, the host of large files knows nothing of them. */
function header({ headers }: Received, name: string): string | undefined {
  return headers.map((each) => each.get(name)).findLast((value) => value !== null) ?? undefined;
}

function etagOf(received: Received): string | undefined {
  const text = header(received, "X-Linked-Etag") ?? received.headers.at(-1)?.get("ETag");
  const etag = text?.replace(/^W\//, "").replaceAll('"', "");
  return isEtag(etag) ? etag : undefined;
}

function checkContent(file: ListedFile, etag: string, received: Received): void {
  const { body } = received;
  const linked = Number(header(received, "X-Linked-Size") ?? Number.NaN);
  const size = Number.isSafeInteger(linked) ? linked : file.size;
  if (size !== undefined && size !== body.length)
    throw new TransientError(`${file.name} came with ${body.length} bytes instead of ${size}`);
  const sha256 = file.sha256 ?? (isSha256(etag) ? etag : undefined);
  if (sha256 !== undefined && sha256 !== createHash("sha256").update(body).digest("hex"))
    throw new TransientError(`the SHA-256 of ${file.name} is not the one that the hub gives`);
  // Only where the hub's list says so: another 40 digits may be anything.
  if (sha256 === undefined && etag === file.blobId && gitBlobId(body) !== etag)
    throw new TransientError(`the digest of ${file.name} is not the one that the hub gives`);
}

/** Git's id of these bytes as a file. */
function gitBlobId(bytes: Uint8Array): string {
  return createHash("sha1").update(`blob ${bytes.length}\0`).update(bytes).digest("hex");
}

/** Throws what an answer of failure means; returns for a good one. Codes: huggingface_hub, utils/_http.py. */
function refuse(received: Received, { repository, settings }: Target, what: string): void {
  const { status } = received;
  if (status === 200) return;
  const { id } = repository;
  const { endpoint, token } = settings;
  const code = header(received, "X-Error-Code");
  const said = (header(received, "X-Error-Message") ?? "").replaceAll(/[^\x20-\x7e]/g, " ").slice(0, 200);
  if (status === 408 || status === 429 || status >= 500) throw new TransientError(...busy(received, endpoint));
  if (code === "RevisionNotFound")
    throw new HubError(
      "revision",
      `${endpoint} has ${id}, but no revision ${JSON.stringify(repository.revision)} of it`,
    );
  if (code === "EntryNotFound")
    throw new HubError("missing", `${endpoint} has no file ${what} in ${repositoryText(repository)}`);
  if (code === "GatedRepo")
    throw new HubError(
      "denied",
      `${id} is gated: accept its terms at ${endpoint}/${id}, and give a token of that account in HF_TOKEN${token === undefined ? "" : " (the token that was sent has no access)"}`,
    );
  if (status === 401 && (token !== undefined || /invalid credentials/i.test(said)))
    throw new HubError(
      "denied",
      `${endpoint} does not accept the token, or has no repository ${id} for it: look at HF_TOKEN and at the name`,
    );
  if (status === 401)
    throw new HubError(
      "denied",
      `${endpoint} has no public repository ${id}: is the name right? A private one needs a token in HF_TOKEN`,
    );
  if (status === 403)
    throw new HubError(
      "denied",
      `${endpoint} forbids access to ${id}${said && `: ${said}`}; the token in HF_TOKEN may lack the right to read it`,
    );
  if (status === 404)
    throw new HubError(
      "missing",
      `${endpoint} has no repository ${repositoryText(repository)}${token === undefined ? ", or it is private and needs a token in HF_TOKEN" : " that the token may see"}`,
    );
  throw new HubError("broken", `${endpoint} answered with status ${status} for ${what} of ${id}${said && `: ${said}`}`);
}

function busy(received: Received, endpoint: string): [string, number?] {
  const seconds = Number(header(received, "Retry-After") ?? Number.NaN);
  const text = `${endpoint} answered with status ${received.status}`;
  if (!(seconds >= 0)) return [text];
  return [`${text} and asks to come back in ${seconds} s`, seconds * 1000];
}
