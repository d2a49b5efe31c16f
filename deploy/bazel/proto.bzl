"""C++ from .proto files with the distribution's protoc and gRPC plug-in."""

def isthmus_cc_proto(name, src, deps = [], visibility = None):
    """Messages of one .proto file.

    Args:
      name: of the library.
      src: the .proto file, in the caller's package.
      deps: other isthmus_cc_proto libraries it imports (their .proto under protos/).
      visibility: as usual.
    """
    stem = src[:-len(".proto")]
    native.genrule(
        name = name + "_gen",
        srcs = [src, "//protos:sources"],
        outs = [stem + ".pb.h", stem + ".pb.cc"],
        cmd = "protoc -I. --cpp_out=$(GENDIR) $(location %s)" % src,
    )
    native.cc_library(
        name = name,
        srcs = [stem + ".pb.cc"],
        hdrs = [stem + ".pb.h"],
        copts = ["-w"],
        visibility = visibility,
        deps = deps + ["//deploy/bazel/syslibs:protobuf"],
    )

def isthmus_cc_grpc(name, src, deps, visibility = None):
    """Service stubs of one .proto file; deps must hold its isthmus_cc_proto."""
    stem = src[:-len(".proto")]
    native.genrule(
        name = name + "_gen",
        srcs = [src, "//protos:sources"],
        outs = [stem + ".grpc.pb.h", stem + ".grpc.pb.cc"],
        cmd = ("protoc -I. --grpc_out=$(GENDIR) --plugin=protoc-gen-grpc=$$(which grpc_cpp_plugin)" +
               " $(location %s)") % src,
    )
    native.cc_library(
        name = name,
        srcs = [stem + ".grpc.pb.cc"],
        hdrs = [stem + ".grpc.pb.h"],
        copts = ["-w"],
        visibility = visibility,
        deps = deps + ["//deploy/bazel/syslibs:grpc"],
    )
