import { GrpcStatus } from "../../engines/grpc-error.ts";
import { WireReader } from "../../protobuf/reader.ts";
import { WireWriter } from "../../protobuf/writer.ts";
import { declares, fileDescriptor, type ProtoFile, withImports } from "./descriptors.ts";
import type { ProtocolAge } from "./protocol-age.ts";
import type { GrpcMethod } from "./server.ts";

/** Fields of ServerReflectionRequest, of which one is set. */
const FILE_BY_FILENAME = 3;
const FILE_CONTAINING_SYMBOL = 4;
const LIST_SERVICES = 7;

/** What reflection tells of: services by name, and the file of the engine's own as it was in a release. */
export interface Reflected {
  readonly services: readonly string[];
  readonly file: ProtoFile;
  readonly age: ProtocolAge;
}

/** Server reflection (v1alpha): lists services, and gives the engine's own proto file with all that it imports. */
export function reflectionMethods({ services, file, age }: Reflected): [string, GrpcMethod][] {
  const writer = new WireWriter();
  const files = withImports(file);
  const wanted = (asked: number, text: string): ProtoFile | undefined => {
    if (asked === FILE_BY_FILENAME) return files.find(({ name }) => name === text);
    return asked === FILE_CONTAINING_SYMBOL ? files.find((each) => declares(each, text)) : undefined;
  };
  return [
    [
      "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
      (call, message) => {
        call.onHalfClose = () => call.end();
        let asked = 0;
        let text = "";
        const r = new WireReader(message);
        while (r.next()) {
          if (r.field >= FILE_BY_FILENAME && r.field <= LIST_SERVICES) asked = r.field;
          if (r.field === FILE_BY_FILENAME || r.field === FILE_CONTAINING_SYMBOL) text = r.string();
          else r.skip();
        }
        const w = writer.reset();
        w.message(2, message);
        const found = wanted(asked, text);
        if (asked === LIST_SERVICES) {
          const list = w.begin(6);
          for (const service of services) {
            const entry = w.begin(1);
            w.text(1, service);
            w.end(entry);
          }
          w.end(list);
        } else if (found) {
          const reply = w.begin(4);
          for (const each of withImports(found)) w.message(1, fileDescriptor(each, age));
          w.end(reply);
        } else {
          const error = w.begin(7);
          w.uint(1, GrpcStatus.NOT_FOUND);
          w.text(2, asked === FILE_BY_FILENAME ? "File not found." : "Symbol not found.");
          w.end(error);
        }
        call.send(w.written());
      },
    ],
  ];
}
