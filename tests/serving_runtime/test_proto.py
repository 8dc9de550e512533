"""The messages are the wire format of V2 clients, and the generated file is that of the .proto files."""

import subprocess
import sys
from pathlib import Path

from google.protobuf import descriptor_pb2

from serving_runtime import proto

FOLDER = Path(proto.__file__).parent

COMPARE = """
import sys
from google.protobuf import descriptor_pb2
from tritonclient.grpc import model_config_pb2, service_pb2
from serving_runtime import proto  # beside the client's own messages: the pools do not meet

ours = descriptor_pb2.FileDescriptorSet.FromString((__import__("pathlib").Path(proto.__file__).parent
       / "generated" / "descriptors.binpb").read_bytes())

def fields(message, prefix):
    yield from (((prefix + message.name, field.name), (field.number, field.type, field.label, field.type_name))
                for field in message.field)
    for nested in message.nested_type:
        yield from fields(nested, prefix + message.name + ".")

def values(enums, prefix):
    return {(prefix + enum.name, value.name): value.number for enum in enums for value in enum.value}

def methods(file):
    return {method.name: (method.input_type, method.output_type, method.client_streaming, method.server_streaming)
            for service in file.service for method in service.method}

theirs, their_enums, their_methods = {}, {}, {}
for module in (model_config_pb2, service_pb2):
    file = descriptor_pb2.FileDescriptorProto()
    module.DESCRIPTOR.CopyToProto(file)
    for message in file.message_type:
        theirs.update(fields(message, ""))
        their_enums.update(values(message.enum_type, message.name + "."))
    their_enums.update(values(file.enum_type, ""))
    their_methods.update(methods(file))
compared, messages, our_methods = set(), set(), {}
for file in ours.file:
    if file.package != "inference":
        continue
    our_methods.update(methods(file))
    for message in file.message_type:
        messages.add(message.name)
        for name, field in fields(message, ""):
            assert theirs[name] == field, (name, theirs[name], field)
            compared.add(name)
        for name, number in values(message.enum_type, message.name + ".").items():
            assert their_enums[name] == number, name
    for name, number in values(file.enum_type, "").items():
        assert their_enums[name] == number, name
assert our_methods == their_methods, set(our_methods.items()) ^ set(their_methods.items())
known = set(service_pb2.DESCRIPTOR.message_types_by_name)
assert known <= messages, known - messages
missing = {name for name in theirs if name[0].partition(".")[0] in known} - compared
assert not missing, missing
print(len(compared))
"""


def test_the_generated_descriptors_are_those_of_the_proto_files(tmp_path: Path) -> None:
    generated = tmp_path / "descriptors.binpb"
    names = ["model_config.proto", "inference.proto", "health.proto", "metrics.proto"]
    names += ["reflection_v1.proto", "reflection_v1alpha.proto"]
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{FOLDER}", f"--descriptor_set_out={generated}", *names]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    kept = descriptor_pb2.FileDescriptorSet.FromString((FOLDER / "generated" / "descriptors.binpb").read_bytes())
    assert descriptor_pb2.FileDescriptorSet.FromString(generated.read_bytes()) == kept


def test_every_method_and_field_has_the_number_and_type_that_v2_clients_use() -> None:
    done = subprocess.run([sys.executable, "-c", COMPARE], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 250
