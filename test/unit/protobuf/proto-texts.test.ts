/** Our proto files against the descriptors of the released stubs, the oldest that we serve and the newest. */
import { describe, expect, test } from "bun:test";
import protobuf from "protobufjs";
import { commonProto, PROTOS } from "../../../src/engines/protos.ts";
import type { ProtoField, ProtoText } from "../../../src/protobuf/proto-text.ts";
import old from "../../golden/proto/descriptors-0.4.14.json";
import golden from "../../golden/proto/descriptors-0.4.28.json";
import { addWellKnown, PROTO_TEXTS } from "../../support/proto-package.ts";

interface FieldShape {
  number: number;
  type: string;
  label: string;
  oneof?: string;
}
interface Descriptors {
  readonly messages: Readonly<Record<string, { fields: Readonly<Record<string, FieldShape>>; reserved?: number[][] }>>;
  readonly services: Readonly<Record<string, Readonly<Record<string, { request: string; response: string }>>>>;
  readonly enums: Readonly<Record<string, Readonly<Record<string, number>>>>;
}
const newest: Descriptors = golden;
const oldest: Descriptors = old;

describe("as protobufjs reads them, they equal the newest descriptors", () => {
  const root = new protobuf.Root();
  addWellKnown(root);
  for (const text of PROTO_TEXTS) protobuf.parse(text, root, { keepCase: true });
  root.resolveAll();
  const fullName = (object: protobuf.ReflectionObject): string => object.fullName.slice(1);
  const objects = collect(root).filter((object) => !fullName(object).startsWith("google"));

  function fieldShape(field: protobuf.Field): FieldShape {
    const type = field.resolvedType === null ? field.type : fullName(field.resolvedType);
    const oneof = field.partOf;
    // `optional` is kept as a oneof of its own around the one field.
    const optional = oneof?.isProto3Optional ?? false;
    if (field instanceof protobuf.MapField)
      return { number: field.id, type: `map<${field.keyType}, ${type}>`, label: "map" };
    return {
      number: field.id,
      type,
      label: field.repeated ? "repeated" : optional ? "optional" : "singular",
      ...(oneof !== null && !optional ? { oneof: oneof.name } : {}),
    };
  }

  function collect(
    namespace: protobuf.NamespaceBase,
    into: protobuf.ReflectionObject[] = [],
  ): protobuf.ReflectionObject[] {
    for (const object of namespace.nestedArray) {
      into.push(object);
      if (object instanceof protobuf.Namespace) collect(object as protobuf.NamespaceBase, into);
    }
    return into;
  }

  test("every message: fields, numbers, types, labels, oneofs, reserved numbers", () => {
    const ours: Record<string, unknown> = {};
    for (const type of objects) {
      if (!(type instanceof protobuf.Type)) continue;
      const reserved = (type.reserved ?? []).filter((range): range is number[] => Array.isArray(range));
      ours[fullName(type)] = {
        fields: Object.fromEntries(type.fieldsArray.map((field) => [field.name, fieldShape(field)])),
        ...(reserved.length > 0 ? { reserved } : {}),
      };
    }
    expect(Object.keys(ours)).toHaveLength(Object.keys(newest.messages).length);
    expect(ours).toEqual({ ...newest.messages });
  });

  test("every enum and its values", () => {
    const ours: Record<string, unknown> = {};
    for (const type of objects) if (type instanceof protobuf.Enum) ours[fullName(type)] = type.values;
    expect(ours).toEqual({ ...newest.enums });
  });

  test("every service and its RPCs", () => {
    const ours: Record<string, unknown> = {};
    for (const service of objects) {
      if (!(service instanceof protobuf.Service)) continue;
      ours[fullName(service)] = Object.fromEntries(
        service.methodsArray.map((method) => [
          method.name,
          {
            request: method.resolvedRequestType === null ? "" : fullName(method.resolvedRequestType),
            response: method.resolvedResponseType === null ? "" : fullName(method.resolvedResponseType),
            client_stream: method.requestStream ?? false,
            server_stream: method.responseStream ?? false,
          },
        ]),
      );
    }
    expect(ours).toEqual({ ...newest.services });
  });
});

const texts: readonly ProtoText[] = [commonProto, ...Object.values(PROTOS)];

describe("as our own loader reads them", () => {
  test("every message: fields, numbers, types, labels, oneofs", () => {
    const ours: Record<string, unknown> = {};
    const theirs: Record<string, unknown> = {};
    for (const text of texts) {
      for (const name of text.messageNames()) {
        const { fullName, fields } = text.message(name);
        ours[fullName] = Object.fromEntries([...fields.values()].map((field) => [field.name, shapeOf(field)]));
        theirs[fullName] = newest.messages[fullName]?.fields;
      }
    }
    expect(Object.keys(ours).sort()).toEqual(Object.keys(newest.messages).sort());
    expect(ours).toEqual(theirs);
  });

  test("every enum, also those inside messages", () => {
    for (const [name, values] of Object.entries(newest.enums)) {
      const text = texts.find(({ packageName }) => name.startsWith(`${packageName}.`))!;
      expect(Object.fromEntries([...text.enumValues(name)].map(([number, value]) => [value, number]))).toEqual(values);
    }
  });

  test("every call", () => {
    for (const text of Object.values(PROTOS)) {
      const { fullName, rpcs } = text.service();
      expect(
        Object.fromEntries(
          rpcs.map(({ name, request, response, serverStream }) => [
            name,
            { request, response, client_stream: false, server_stream: serverStream },
          ]),
        ),
      ).toEqual({ ...newest.services[fullName] } as never);
    }
  });
});

describe("marks of age", () => {
  test("stand at what 0.4.14 lacks, and nowhere else", () => {
    const marked: string[] = [];
    for (const text of texts) {
      for (const name of text.messageNames()) {
        const message = text.message(name);
        for (const field of message.fields.values())
          if ((message.since ?? field.since) !== undefined) marked.push(`${message.fullName}.${field.name}`);
      }
    }
    for (const text of Object.values(PROTOS)) {
      const { fullName, rpcs } = text.service();
      for (const { name, since } of rpcs) if (since !== undefined) marked.push(`${fullName}/${name}`);
    }
    const added: string[] = [];
    for (const [name, { fields }] of Object.entries(newest.messages))
      for (const field of Object.keys(fields))
        if (oldest.messages[name]?.fields[field] === undefined) added.push(`${name}.${field}`);
    for (const [name, rpcs] of Object.entries(newest.services))
      for (const rpc of Object.keys(rpcs)) if (oldest.services[name]?.[rpc] === undefined) added.push(`${name}/${rpc}`);
    expect(added.length).toBeGreaterThan(100);
    expect(marked.sort()).toEqual(added.sort());
  });

  test("what both have is the same, but for the presence of one field", () => {
    const changed: string[] = [];
    for (const [name, { fields }] of Object.entries(oldest.messages))
      for (const [field, shape] of Object.entries(fields))
        if (!Bun.deepEquals(newest.messages[name]?.fields[field], shape)) changed.push(`${name}.${field}`);
    expect(changed).toEqual(["sglang.grpc.scheduler.GenerateRequest.data_parallel_rank"]);
  });
});

function shapeOf({ number, type, label, keyType, oneof }: ProtoField): FieldShape {
  if (keyType !== undefined) return { number, type: `map<${keyType}, ${type}>`, label };
  return { number, type, label, ...(oneof !== undefined && { oneof }) };
}
