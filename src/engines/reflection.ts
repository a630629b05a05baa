/** What a gRPC server tells of its services: https://github.com/grpc/grpc/blob/master/doc/server-reflection.md */
import { WireReader } from "../protobuf/reader.ts";
import { WireWriter } from "../protobuf/writer.ts";
import type { Channel } from "./channel.ts";
import { GrpcError, GrpcStatus } from "./grpc-error.ts";

/** The only version that the engines' servers have. */
const PATH = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";

const Ask = { fileContainingSymbol: 4, listServices: 7 } as const;
const Told = { files: 4, services: 6 } as const;

/** Names of the server's services. Rejects with GrpcErrors: UNIMPLEMENTED where there is no reflection. */
export async function listServices(channel: Channel, deadlineMs: number): Promise<readonly string[]> {
  const names: string[] = [];
  const list = await ask(channel, Ask.listServices, "*", Told.services, deadlineMs);
  while (list?.next()) {
    if (list.field === 1) names.push(nameOf(list.message()));
    else list.skip();
  }
  return names;
}

/** Which messages, fields and calls a server was built with. */
export class Description {
  /** Fields by the full names of messages, calls by those of services. */
  private readonly members = new Map<string, ReadonlySet<string>>();

  /** `owner`: full name of a message or service; undefined: nothing is known of it. */
  has(owner: string, member: string): boolean | undefined {
    return this.members.get(owner)?.has(member);
  }

  /** Adds the messages and services of a FileDescriptorProto. Throws WireError. */
  addFile(file: WireReader): void {
    let packageName = "";
    const owners: WireReader[] = [];
    while (file.next()) {
      if (file.field === 2) packageName = file.string();
      else if (file.field === 4 || file.field === 6) owners.push(file.message());
      else file.skip();
    }
    for (const owner of owners) {
      let name = "";
      const members = new Set<string>();
      while (owner.next()) {
        if (owner.field === 1) name = owner.string();
        // field of DescriptorProto, method of ServiceDescriptorProto; both begin with their name
        else if (owner.field === 2) members.add(nameOf(owner.message()));
        else owner.skip();
      }
      this.members.set(`${packageName}.${name}`, members);
    }
  }
}

/** Describes the files of the given symbols; those that the server does not tell of are left out. Rejects with GrpcErrors. */
export async function describe(channel: Channel, symbols: readonly string[], deadlineMs: number): Promise<Description> {
  const description = new Description();
  for (const symbol of symbols) {
    const files = await ask(channel, Ask.fileContainingSymbol, symbol, Told.files, deadlineMs);
    while (files?.next()) {
      if (files.field === 1) description.addFile(files.message());
      else files.skip();
    }
  }
  return description;
}

function nameOf(message: WireReader): string {
  let name = "";
  while (message.next()) {
    if (message.field === 1) name = message.string();
    else message.skip();
  }
  return name;
}

/** One question; undefined when the answer is of another kind, as that to an unknown symbol is. */
function ask(
  channel: Channel,
  field: number,
  value: string,
  told: number,
  deadlineMs: number,
): Promise<WireReader | undefined> {
  const request = new WireWriter();
  request.string(field, value);
  return new Promise((resolve, reject) => {
    let answer: WireReader | undefined;
    channel.serverStream(
      PATH,
      request.written(),
      {
        onMessage(bytes, start, end) {
          const reply = new WireReader(bytes.slice(start, end));
          while (reply.next()) {
            if (reply.field === told) answer = reply.message();
            else reply.skip();
          }
        },
        onEnd(error) {
          if (error === undefined) resolve(answer);
          else reject(error);
        },
      },
      { deadlineMs },
    );
  });
}

/** Whether a failure says that the server answers, but not this. */
export function isNotOffered(error: unknown): boolean {
  return error instanceof GrpcError && !AWAY.has(error.code);
}
const AWAY: ReadonlySet<number> = new Set([GrpcStatus.UNAVAILABLE, GrpcStatus.DEADLINE_EXCEEDED]);
