"""caller.py ADDRESS QUESTIONS: as go/caller, with grpcio, knowing of the messages what the server's reflection says."""

import json
import sys

import grpc
from google.protobuf import json_format
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import MessageFactory
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase


def main():
    address, path = sys.argv[1:]
    channel = grpc.insecure_channel(address, options=[("grpc.max_receive_message_length", -1)])
    database = ProtoReflectionDescriptorDatabase(channel)
    pool, factory = DescriptorPool(database), None
    factory = MessageFactory(pool)
    out = {"services": sorted(database.get_services()), "grpc": []}
    with open(path) as file:
        questions = json.load(file)
    for question in questions:
        service, name = question["method"].split("/")
        method = pool.FindServiceByName(service).FindMethodByName(name)
        request = json_format.ParseDict(
            question["request"], factory.GetPrototype(method.input_type)(), ignore_unknown_fields=True
        )
        call = channel.unary_unary(
            "/" + question["method"], type(request).SerializeToString, factory.GetPrototype(method.output_type).FromString
        )
        try:
            answer = {"code": "", "message": "", "answer": json_format.MessageToDict(call(request, timeout=30))}
        except grpc.RpcError as error:
            answer = {"code": error.code().name.lower(), "message": error.details()}
        out["grpc"].append(answer)
    json.dump(out, sys.stdout)


if __name__ == "__main__":
    main()
