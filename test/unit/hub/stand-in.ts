/**
 * A hub to test against: the two calls of the HTTP API that a model's files need, as huggingface_hub 2.4 expects them, and a second server,
 * of another origin, for large files. Every request is kept.
 */
import { createHash } from "node:crypto";

export interface StandInFile {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Served by a redirect to the other origin. */
  readonly large?: boolean;
}

export interface SeenRequest {
  readonly server: "hub" | "storage";
  readonly method: string;
  readonly path: string;
  readonly token: string | null;
  readonly encoding: string | null;
}

/** Answers instead of the hub, or undefined for its usual answer. */
export type Fault = (request: Request, seen: SeenRequest) => Response | undefined | Promise<Response | undefined>;

export interface StandInRepository {
  commit: string;
  files: Record<string, StandInFile>;
  /** Commits of other branches and tags; all have the same files. */
  revisions?: Record<string, string>;
  /** Who has no such token is told that there is nothing. */
  needsToken?: string;
  gated?: boolean;
}

const text = (value: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(value);
const gitBlobId = (bytes: Uint8Array): string =>
  createHash("sha1").update(`blob ${bytes.length}\0`).update(bytes).digest("hex");
const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");
const problem = (status: number, code: string, message = code): Response =>
  Response.json({ error: message }, { status, headers: { "X-Error-Code": code, "X-Error-Message": message } });

export const textFile = (value: string): StandInFile => ({ bytes: text(value) });

export class StandInHub {
  readonly seen: SeenRequest[] = [];
  readonly repositories: Record<string, StandInRepository> = {};
  fault: Fault | undefined;
  /** Does the list of files tell sizes and digests? A plain mirror does not. */
  listsBlobs = true;
  private readonly hub = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: (request) => this.answer("hub", request) });
  private readonly storage = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: (request) => this.answer("storage", request),
  });

  get url(): string {
    return `http://127.0.0.1:${this.hub.port}`;
  }

  async stop(): Promise<void> {
    await Promise.all([this.hub.stop(true), this.storage.stop(true)]);
  }

  /** Paths that were asked for since the last call, in order. */
  takePaths(): string[] {
    return this.seen.splice(0).map(({ path }) => path);
  }

  private async answer(server: "hub" | "storage", request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    const { method, headers } = request;
    const path = decodeURIComponent(pathname);
    const seen = {
      server,
      method,
      path,
      token: headers.get("authorization"),
      encoding: headers.get("accept-encoding"),
    };
    this.seen.push(seen);
    const instead = await this.fault?.(request, seen);
    if (instead) return instead;
    return server === "hub" ? this.hubAnswer(request, pathname) : this.storageAnswer(pathname);
  }

  private hubAnswer(request: Request, pathname: string): Response {
    const api = /^\/api\/models\/(.+?)(?:\/(revision|tree)\/([^/]+))?$/.exec(pathname);
    const file = /^\/(.+?)\/resolve\/([^/]+)\/(.+)$/.exec(pathname);
    const repository = this.repositories[api?.[1] ?? file?.[1] ?? ""];
    const token = request.headers.get("authorization");
    const hidden = repository?.needsToken !== undefined && token !== `Bearer ${repository.needsToken}`;
    if (!repository || hidden)
      return token === null
        ? problem(401, "", "Invalid username or password.")
        : problem(404, "RepoNotFound", "Repository not found");
    const revision = decodeURIComponent(api?.[3] ?? file?.[2] ?? "main");
    const commit = [repository.commit, "main"].includes(revision)
      ? repository.commit
      : repository.revisions?.[revision];
    if (commit === undefined) return problem(404, "RevisionNotFound", `Invalid rev id: ${revision}`);
    if (api)
      return Response.json(api[2] === "tree" ? treeOf(repository) : this.listOf(repository, api[1] ?? "", commit));
    return this.resolve(repository, commit, decodeURIComponent(file?.[3] ?? ""));
  }

  private listOf(repository: StandInRepository, id: string, commit: string): object {
    const siblings = treeOf(repository).map(({ path, size, oid, lfs }) =>
      this.listsBlobs
        ? { rfilename: path, size, blobId: oid, ...(lfs && { lfs: { sha256: lfs.oid, size, pointerSize: 130 } }) }
        : { rfilename: path },
    );
    return { id, modelId: id, sha: commit, private: false, gated: repository.gated ? "manual" : false, siblings };
  }

  private resolve(repository: StandInRepository, commit: string, name: string): Response {
    if (repository.gated) return problem(403, "GatedRepo", "Access to this model is restricted.");
    const file = repository.files[name];
    if (!file) return problem(404, "EntryNotFound", "Entry not found");
    const { bytes, large } = file;
    if (!large) return new Response(bytes, { headers: { "X-Repo-Commit": commit, ETag: `"${gitBlobId(bytes)}"` } });
    const digest = sha256(bytes);
    return new Response(null, {
      status: 302,
      headers: {
        "X-Repo-Commit": commit,
        "X-Linked-Etag": `"${digest}"`,
        "X-Linked-Size": String(bytes.length),
        // Another name, too: huggingface_hub 1 takes another port of one host for the same place.
        Location: `http://localhost:${this.storage.port}/${digest}`,
      },
    });
  }

  private storageAnswer(pathname: string): Response {
    const files = Object.values(this.repositories).flatMap(({ files }) => Object.values(files));
    const file = files.find(({ bytes }) => pathname === `/${sha256(bytes)}`);
    return file
      ? new Response(file.bytes, { headers: { ETag: '"of-the-storage"' } })
      : new Response(null, { status: 403 });
  }
}

function treeOf({ files }: StandInRepository) {
  return Object.entries(files).map(([path, { bytes, large }]) => ({
    type: "file",
    path,
    size: bytes.length,
    oid: large ? gitBlobId(text(`pointer to ${sha256(bytes)}`)) : gitBlobId(bytes),
    lfs: large ? { oid: sha256(bytes), size: bytes.length, pointerSize: 130 } : undefined,
  }));
}
