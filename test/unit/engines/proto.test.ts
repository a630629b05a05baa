/** Our proto files against the descriptors of the released stubs (their version is in the file). */
import { expect, test } from "bun:test";
import protobuf from "protobufjs";
import vllmText from "../../../proto/vllm_engine.proto" with { type: "text" };
import golden from "../../golden/proto/descriptors-0.4.28.json";
import { lazyProtoPackage } from "../../support/proto-package.ts";

interface FieldShape {
  number: number;
  type: string;
  label: string;
  oneof?: string;
}

const root = lazyProtoPackage("vllm.grpc.engine", vllmText).root;
const fullName = (object: protobuf.ReflectionObject): string => object.fullName.slice(1);

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
const objects = collect(root);

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
  expect(Object.keys(ours)).toHaveLength(Object.keys(golden.messages).length);
  expect(ours).toEqual(golden.messages as Record<string, unknown>);
});

test("every enum and its values", () => {
  const ours: Record<string, unknown> = {};
  for (const type of objects) if (type instanceof protobuf.Enum) ours[fullName(type)] = type.values;
  expect(ours).toEqual(golden.enums as Record<string, unknown>);
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
  expect(ours).toEqual(golden.services as Record<string, unknown>);
});
