"""Foreign clients, which run in processes of their own."""

PRELUDE = """
import sys
import numpy as np
protocol, port = sys.argv[1:]
if protocol == "http":
    import tritonclient.http as v2
else:
    import tritonclient.grpc as v2
client = v2.InferenceServerClient(f"127.0.0.1:{port}")

def plain(answer):
    if protocol == "http":
        return answer
    from google.protobuf.json_format import MessageToDict
    return MessageToDict(answer, preserving_proto_field_name=True)

def given(name, datatype, array, **form):
    tensor = v2.InferInput(name, list(array.shape), datatype)
    tensor.set_data_from_numpy(array, **form)
    return tensor

def refused(code, *args, **kwargs):
    try:
        client.infer(*args, **kwargs)
    except v2.InferenceServerException as error:
        status = str(error.status())
        assert status == code, (status, error)
        return error.message()
    raise AssertionError("not refused")
"""
