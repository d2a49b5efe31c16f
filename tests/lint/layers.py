"""Who may include whom (the order of layers), and the one door of each heavy library."""

import source

# Layer -> the layers it may include beside itself. Down only; what is not listed is not allowed.
GROUND = ("daemon/base", "gpu", "compression", "protos")
MAY_INCLUDE = {
    "compression": (),
    "protos": (),
    "gpu": ("compression",),
    "daemon/base": (),
    "daemon/membership": ("daemon/base",),
    "daemon/rounds": ("daemon/base",),
    # The ledger hands out blobs through the transport's own interface for them; a snapshot is laid out by the table of
    # tensors, which needs no engine.
    "daemon/store": GROUND + ("daemon/exchange", "daemon/training/tensor_table.h"),
    "daemon/exchange": GROUND + ("daemon/rounds", "daemon/membership"),
    "daemon/training": GROUND,
    "daemon/pipeline": GROUND + ("daemon/training", "daemon/exchange"),
}
MIDDLE = ("daemon/training", "daemon/pipeline", "daemon/exchange", "daemon/rounds", "daemon/membership", "daemon/store")
MAY_INCLUDE["daemon/worker"] = GROUND + MIDDLE
MAY_INCLUDE["daemon/coordinator"] = GROUND + MIDDLE
MAY_INCLUDE["daemon/rpc"] = GROUND + MIDDLE  # knows no role
MAY_INCLUDE["daemon/app"] = GROUND + MIDDLE + ("daemon/worker", "daemon/coordinator", "daemon/rpc")

# Library -> how its headers begin, and the paths that may include them.
DOORS = {
    "libtorch": (("<torch/", "<ATen/", "<c10/"), ("daemon/training/", "daemon/pipeline/")),
    "gRPC": (("<grpc", "<grpcpp/"), ("daemon/rpc/",)),
    "CUDA": (("<cuda", "<cub/", "<thrust/", "<nccl"), ("gpu/",)),
    "spdlog": (("<spdlog/", "<fmt/"), ("daemon/base/logging.cc",)),
    "JSON": (("<nlohmann/",), ("daemon/store/safetensors.cc", "daemon/app/")),
    "SQLite": (("<sqlite3",), ("daemon/store/",)),
    "CLI11": (("<CLI/", '"CLI/'), ("daemon/app/",)),
}


def layer_of(path):
    """The layer a file belongs to; None outside the layers (tests, deploy)."""
    for layer in MAY_INCLUDE:
        if path.startswith(layer + "/"):
            return layer
    return None


def _is_cpp(path):
    return path.endswith((".h", ".cc", ".cu", ".cuh"))


def _is_test(path):
    return path.rsplit("/", 1)[-1].endswith(("_test.cc", "_bench.cc", "_fuzz.cc"))


def check_layers(texts):
    """An include that points up or sideways. Tests keep to their layer too; only tests/ is free."""
    found = []
    for path, text in sorted(texts.items()):
        layer = layer_of(path)
        if layer is None or not _is_cpp(path):
            continue
        for line, target in source.includes(text):
            other = layer_of(target.strip('<>"'))
            is_named = target.strip('<>"') in MAY_INCLUDE[layer]
            if other is None or other == layer or other in MAY_INCLUDE[layer] or is_named:
                if not (target.startswith('"tests/') and not _is_test(path)):
                    continue
                other = "tests"
            found.append(f"{path}:{line}: {layer} must not include {other} ({target})")
    return found


def _door_of(target):
    for library, (beginnings, _) in DOORS.items():
        if target.startswith(beginnings):
            return library
    if target.endswith('.grpc.pb.h"'):
        return "gRPC"
    return None


def check_doors(texts):
    """A heavy header included elsewhere than at its door, and libtorch together with protobuf, however indirectly."""
    found = []
    graph = {path: [target for _, target in source.includes(text)] for path, text in texts.items() if _is_cpp(path)}
    for path, text in sorted(texts.items()):
        if not _is_cpp(path):
            continue
        for line, target in source.includes(text):
            library = _door_of(target)
            if library and not path.startswith(DOORS[library][1]):
                found.append(f"{path}:{line}: {library} is included only in {', '.join(DOORS[library][1])} ({target})")
        if path.endswith((".cc", ".cu")):
            found += _check_torch_with_protobuf(path, graph)
    return found


def _check_torch_with_protobuf(path, graph):
    """libtorch may carry older protobuf headers, so one translation unit must never see both."""
    seen, todo = set(), [path]
    torch_from, protobuf_from = None, None
    while todo:
        current = todo.pop()
        if current in seen:
            continue
        seen.add(current)
        for target in graph.get(current, []):
            if _door_of(target) == "libtorch":
                torch_from = torch_from or current
            elif target.endswith('.pb.h"') or target.startswith("<google/protobuf/"):
                protobuf_from = protobuf_from or current
            elif target.startswith('"'):
                todo.append(target.strip('"'))
    if torch_from and protobuf_from:
        return [f"{path}:1: sees libtorch (through {torch_from}) and protobuf (through {protobuf_from}); never both"]
    return []
