"""Repositories for what may live in more than one place: libtorch and CUDA."""

_TORCH_LIBRARIES = ["torch", "torch_cpu", "c10"]

_TORCH_BUILD = """
package(default_visibility = ["//visibility:public"])

cc_library(
    name = "torch",
    hdrs = glob(["include/**"], allow_empty = True),
    copts = [],
    includes = {includes},
    linkopts = {linkopts},
)
"""

def _libtorch_impl(ctx):
    home = ctx.os.environ.get("ISTHMUS_LIBTORCH", "")
    if home:
        ctx.symlink(home + "/include", "include")
        includes = ["include", "include/torch/csrc/api/include"]
        linkopts = ["-L" + home + "/lib", "-Wl,-rpath," + home + "/lib"]
    else:
        if not ctx.path("/usr/include/torch/csrc/api/include").exists:
            fail("libtorch not found: run deploy/setup.sh, or set ISTHMUS_LIBTORCH to an unpacked libtorch")
        ctx.symlink("/usr/include/torch/csrc/api/include", "api_include")
        includes = ["api_include"]
        linkopts = []
    linkopts = linkopts + ["-l" + lib for lib in _TORCH_LIBRARIES]
    ctx.file("BUILD", _TORCH_BUILD.format(includes = repr(includes), linkopts = repr(linkopts)))

libtorch_repository = repository_rule(
    implementation = _libtorch_impl,
    environ = ["ISTHMUS_LIBTORCH"],
    local = True,
)

def _cuda_impl(ctx):
    nvcc = ""
    home = ctx.os.environ.get("CUDA_HOME", "")
    for candidate in [home + "/bin/nvcc" if home else "", "/usr/local/cuda/bin/nvcc"]:
        if candidate and ctx.path(candidate).exists:
            nvcc = candidate
            break
    if not nvcc:
        found = ctx.which("nvcc")
        nvcc = str(found) if found else ""
    ctx.file("BUILD", "")
    ctx.file("cuda.bzl", "NVCC = %r\n" % nvcc)

cuda_repository = repository_rule(
    implementation = _cuda_impl,
    environ = ["CUDA_HOME", "PATH"],
    local = True,
)
