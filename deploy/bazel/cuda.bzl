"""CUDA by nvcc, where it was found; elsewhere the targets are empty and nothing is skipped by hand."""

load("@cuda//:cuda.bzl", "NVCC")

HAS_NVCC = NVCC != ""

def isthmus_cuda_library(name, src, hdrs, headers_of = [], deps = [], visibility = None):
    """A library of one .cu file.

    Args:
      name: of the library.
      src: the .cu file.
      hdrs: its headers.
      headers_of: further header files it includes, as file labels.
      deps: cc_library targets of those headers.
      visibility: as usual.
    """
    if not HAS_NVCC:
        native.cc_library(name = name, visibility = visibility)
        return
    object_file = name + ".pic.o"
    native.genrule(
        name = name + "_object",
        srcs = [src] + hdrs + headers_of,
        outs = [object_file],
        # No contraction and no flushing: the bits are the host's. Position independent, as Bazel links.
        cmd = ("%s -std=c++17 -O2 -arch=sm_90 -fmad=false -ftz=false -prec-div=true -Xcompiler -fPIC,-ffp-contract=off" +
               " -I . -c $(location %s) -o $@") % (NVCC, src),
    )
    toolkit = NVCC[:-len("/bin/nvcc")]
    native.cc_library(
        name = name,
        srcs = [object_file],
        hdrs = hdrs,
        # The runtime is linked in, so that the program starts where there is no CUDA.
        linkopts = ["-L%s/lib64" % toolkit, "-lcudart_static", "-ldl", "-lrt", "-lpthread"],
        visibility = visibility,
        deps = deps,
    )
