import { GrpcStatus } from "../../engines/grpc-error.ts";
import { WireReader } from "../../protobuf/reader.ts";
import { WireWriter } from "../../protobuf/writer.ts";
import type { GrpcMethod } from "./server.ts";

const LIST_SERVICES = 7;

/** Server reflection (v1alpha): lists services; files and symbols are not found. */
export function reflectionMethods(services: readonly string[]): [string, GrpcMethod][] {
  const writer = new WireWriter();
  return [
    [
      "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
      (call, message) => {
        call.onHalfClose = () => call.end();
        let asked = 0;
        const r = new WireReader(message);
        while (r.next()) {
          if (r.field >= 3 && r.field <= LIST_SERVICES) asked = r.field;
          r.skip();
        }
        const w = writer.reset();
        w.message(2, message);
        if (asked === LIST_SERVICES) {
          const list = w.begin(6);
          for (const service of services) {
            const entry = w.begin(1);
            w.text(1, service);
            w.end(entry);
          }
          w.end(list);
        } else {
          const error = w.begin(7);
          w.uint(1, GrpcStatus.NOT_FOUND);
          w.text(2, "Symbol not found.");
          w.end(error);
        }
        call.send(w.written());
      },
    ],
  ];
}
