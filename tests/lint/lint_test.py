#!/usr/bin/env python3
"""Each rule finds its bad sample and leaves the good one alone."""

import json
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(HERE)), "deploy"))

import count_tests  # noqa: E402
import layers  # noqa: E402
import rules  # noqa: E402
import source  # noqa: E402


class LayersTest(unittest.TestCase):
    def findings(self, path, *targets):
        return layers.check_layers({path: "".join(f"#include {t}\n" for t in targets)})

    def test_an_include_may_point_down(self):
        self.assertEqual(self.findings("daemon/worker/w.cc", '"daemon/training/trainer.h"', '"daemon/base/ids.h"'), [])
        self.assertEqual(self.findings("gpu/apply.cc", '"compression/layout.h"', "<vector>"), [])

    def test_one_header_of_another_layer_may_be_named_alone(self):
        self.assertEqual(self.findings("daemon/store/s.cc", '"daemon/training/tensor_table.h"'), [])
        self.assertEqual(len(self.findings("daemon/store/s.cc", '"daemon/training/trainer.h"')), 1)

    def test_an_include_that_points_up_or_sideways_is_found(self):
        for path, target in [("compression/a.cc", '"daemon/base/ids.h"'), ("compression/a.cc", '"protos/run.pb.h"'),
                             ("daemon/rounds/r.cc", '"protos/run.pb.h"'), ("daemon/rounds/r.cc", '"daemon/membership/v.h"'),
                             ("daemon/exchange/e.cc", '"daemon/training/trainer.h"'),
                             ("daemon/training/t.cc", '"daemon/exchange/transport.h"'),
                             ("daemon/rpc/s.cc", '"daemon/coordinator/hub.h"'), ("daemon/worker/w.h", '"tests/fake.h"'),
                             ("daemon/base/b.h", '"daemon/app/a.h"'), ("daemon/worker/w_test.cc", '"daemon/rpc/r.h"')]:
            self.assertEqual(len(self.findings(path, target)), 1, (path, target))

    def test_tests_outside_the_layers_may_include_anything(self):
        self.assertEqual(self.findings("tests/sim/run.cc", '"daemon/coordinator/c.h"', '"daemon/worker/w.h"'), [])


class DoorsTest(unittest.TestCase):
    def test_heavy_headers_are_refused_outside_their_door(self):
        for target in ("<torch/torch.h>", "<grpcpp/grpcpp.h>", '"protos/service.grpc.pb.h"', "<cuda_runtime.h>",
                       "<spdlog/spdlog.h>", "<sqlite3.h>", "<CLI/CLI.hpp>"):
            self.assertEqual(len(layers.check_doors({"daemon/worker/w.cc": f"#include {target}\n"})), 1, target)

    def test_heavy_headers_are_allowed_at_their_door(self):
        self.assertEqual(layers.check_doors({"daemon/training/torch_trainer.cc": "#include <torch/torch.h>\n",
                                             "daemon/rpc/s.cc": '#include "protos/service.grpc.pb.h"\n',
                                             "gpu/apply.cu": "#include <cuda_runtime.h>\n",
                                             "daemon/store/l.cc": "#include <sqlite3.h>\n"}), [])

    def test_libtorch_and_protobuf_in_one_unit_are_found_through_other_headers(self):
        texts = {"daemon/training/t.cc": '#include "daemon/training/a.h"\n#include "daemon/training/b.h"\n',
                 "daemon/training/a.h": "#include <torch/torch.h>\n",
                 "daemon/training/b.h": '#include "protos/run.pb.h"\n'}
        found = layers.check_doors(texts)
        self.assertEqual(len(found), 1)
        self.assertIn("daemon/training/a.h", found[0])
        self.assertIn("daemon/training/b.h", found[0])


class BannedWordsTest(unittest.TestCase):
    def findings(self, code, path="daemon/worker/w.cc"):
        return rules.check_banned_words(path, code)

    def test_each_banned_word_is_found(self):
        for code in ("std::this_thread::sleep_for(x);", "usleep(5);", "sleep(1);", "absl::SleepFor(d);",
                     "std::chrono::seconds s;", "#include <chrono>", "auto t = absl::Now();", "time(NULL);",
                     "time(nullptr);", "std::random_device r;", "int x = rand();", "std::mutex m;", "#include <mutex>",
                     "throw 1;", "} catch (...) {", "using namespace std;", "#pragma once",
                     'Dial("localhost:7700");', 'Dial("127.0.0.1:80");'):
            self.assertEqual(len(self.findings(code, "daemon/worker/w_test.cc")), 1, code)

    def test_comments_strings_and_look_alikes_are_left_alone(self):
        for code in ("// sleep(1) and throw", '"throw and catch (it)";', "/* std::mutex */", "round_time(0);",
                     "runtime(NULL_VALUE);", "absl::Mutex m;", "brand();", 'Listen("127.0.0.1:0");',
                     'Parse("isthmus://coord.example.org:7700/run");', "clock->Now();", "asleep(1);", "Catch(x);"):
            self.assertEqual(self.findings(code, "daemon/worker/w_test.cc"), [], code)

    def test_the_clock_may_read_the_clock(self):
        self.assertEqual(self.findings("absl::Now();", "daemon/base/clock.cc"), [])

    def test_files_that_include_libtorch_may_catch_but_not_throw(self):
        door = "#include <torch/torch.h>\n"
        self.assertEqual(self.findings(door + "} catch (const c10::Error& e) {", "daemon/training/t.cc"), [])
        self.assertEqual(len(self.findings(door + "throw 1;", "daemon/training/t.cc")), 1)

    def test_literal_ports_are_refused_in_tests_only(self):
        code = 'Dial("localhost:7700");'
        self.assertEqual(len(self.findings(code, "daemon/worker/w_test.cc")), 1)
        self.assertEqual(self.findings(code, "daemon/app/a.cc"), [])


class MarksTest(unittest.TestCase):
    def test_marks_of_unfinished_work_and_paths_of_one_machine_are_found(self):
        for text in ("// TO" + "DO: later", "# FIX" + "ME", "// place" + "holder", "open('/ho" + "me/me/x')",
                     'cd "/wo' + 'rk/main"'):
            self.assertEqual(len(rules.check_marks("daemon/a.cc", text)), 1, text)

    def test_ordinary_text_is_left_alone(self):
        for text in ("// what is to do", "https://example.org/home/page", "./home/x", "/var/lib/isthmus"):
            self.assertEqual(rules.check_marks("daemon/a.cc", text), [], text)


class SizesTest(unittest.TestCase):
    def function(self, name, lines):
        return f"int {name}(int a,\n  int b) {{\n" + "  a += b;\n" * (lines - 3) + "}\n"

    def test_a_file_over_500_lines_is_found(self):
        self.assertEqual(rules.check_file_size("a.cc", "x\n" * 500), [])
        self.assertEqual(len(rules.check_file_size("a.cc", "x\n" * 501)), 1)

    def test_long_functions_are_found_once_they_are_more_than_three_in_a_hundred(self):
        short = "".join(self.function(f"F{i}", 5) for i in range(99))
        self.assertEqual(rules.check_function_sizes({"a.cc": short + self.function("Long", 61)}), [])
        found = rules.check_function_sizes({"a.cc": self.function("Short", 60) + self.function("Long", 61)})
        self.assertEqual(len(found), 1)
        self.assertTrue(found[0].startswith("a.cc:61: Long has 61 lines"), found[0])

    def test_the_scanner_tells_functions_from_other_braces(self):
        text = """
namespace isthmus {
class Foo : public Bar {
 public:
  Foo(int a) : a_(a), b_{1} {
    auto f = [&](int x) { return x; };
  }
  virtual int Get() const = 0;
 private:
  std::vector<int> v_ = {1, 2};
};
TEST(Foo, Works) {
  if (x) {
  }
}
const char* kText = "} {";
enum class E { kA };
}  // namespace isthmus
"""
        found = [(b.kind, b.name, b.begin, b.end) for b in source.blocks(text) if b.kind != "other"]
        self.assertEqual(found, [("class", "Foo", 3, 11), ("function", "Foo", 5, 7), ("function", "TEST", 12, 15)])


class HeadersTest(unittest.TestCase):
    def test_a_header_needs_a_comment_first_and_one_above_each_further_class(self):
        good = "// What it is.\nclass A {\n};\n\n// Another.\ntemplate <typename T>\nclass B {\n};\nclass C;\n"
        self.assertEqual(rules.check_header_comments("a.h", good), [])
        bad = "#ifndef X\nclass A {\n};\n\nclass B {\n};\n"
        self.assertEqual(len(rules.check_header_comments("a.h", bad)), 2)

    def test_an_interface_has_at_most_seven_pure_virtual_methods(self):
        def interface(count):
            return "class A {\n" + "".join(f"  virtual int F{i}(int a,\n    int b) = 0;\n" for i in range(count)) + \
                "  class Listener {\n    virtual void G() = 0;\n  };\n  int x = 0;\n};\n"
        self.assertEqual(rules.check_interfaces("a.h", interface(7)), [])
        self.assertEqual(len(rules.check_interfaces("a.h", interface(8))), 1)


class ProtoTest(unittest.TestCase):
    def test_a_message_or_each_of_its_fields_is_described(self):
        good = "// A.\nmessage A {\n  int32 x = 1;\n}\nmessage B {\n  int32 x = 1;  // it\n  // that\n  int32 y = 2;\n}\n"
        self.assertEqual(rules.check_proto("a.proto", good), [])
        self.assertEqual(len(rules.check_proto("a.proto", "message A {\n  int32 x = 1;\n}\n")), 1)
        self.assertEqual(len(rules.check_proto("a.proto", "message A { int32 x = 1; }\n")), 1)

    def test_the_zero_of_an_enum_means_unspecified(self):
        self.assertEqual(rules.check_proto("a.proto", "enum E {\n  E_UNSPECIFIED = 0;\n}\n"), [])
        self.assertEqual(len(rules.check_proto("a.proto", "enum E {\n  FIRST = 0;\n}\n")), 1)


class TreeTest(unittest.TestCase):
    def test_a_source_that_no_build_file_names_is_found(self):
        texts = {"gpu/BUILD": 'srcs = ["a.cc"]', "gpu/a.cc": "", "gpu/b.cc": ""}
        self.assertEqual(rules.check_in_build(texts), ["gpu/b.cc:1: no target in its folder's BUILD names this file"])

    def test_two_types_of_one_name_are_found_unless_they_are_nested(self):
        texts = {"gpu/a.h": "namespace isthmus {\nstruct A {\n  int x;\n};\n}\n",
                 "daemon/base/b.h": "namespace isthmus {\nclass B {\n  struct A {\n  };\n};\n}\n"}
        texts["daemon/base/d.h"] = "namespace isthmus {\nstruct B::A {\n};\n}\n"
        self.assertEqual(rules.check_unique_types(texts), [])
        texts["daemon/base/c.h"] = "namespace isthmus {\nclass B {\n};\n}\n"
        self.assertEqual(rules.check_unique_types(texts), ["daemon/base/c.h:2: B is also a type of daemon/base/b.h"])

    def test_two_files_of_one_name_are_found(self):
        self.assertEqual(len(rules.check_unique_names({"gpu/a.h": "", "daemon/base/a.h": ""})), 1)


class CountTest(unittest.TestCase):
    def events(self, *events):
        return [json.dumps(event) for event in events]

    def result(self, label, status, uri=None):
        outputs = [{"name": "test.xml", "uri": uri}] if uri else []
        return {"id": {"testResult": {"label": label, "run": 1}},
                "testResult": {"status": status, "testActionOutput": outputs}}

    def test_cases_of_googletest_count_one_by_one_and_other_tests_as_one(self):
        xml = ('<testsuites name="AllTests"><testsuite><testcase name="a" classname="S" status="run" result="completed"/>'
               '<testcase name="b" classname="S" status="run"><failure message="x"/></testcase>'
               '<testcase name="c" classname="S" status="run" result="skipped"/>'
               '<testcase name="d" classname="S" status="notrun" result="suppressed"/></testsuite></testsuites>')
        count = count_tests.count_events(self.events(self.result("//a", "FAILED", "file:///a"),
                                                     self.result("//b", "PASSED")), lambda uri: xml)
        self.assertEqual(count.line(), "2 passed, 1 failed, 2 skipped")
        self.assertEqual(count.failures, ["//a S.b"])

    def test_a_test_that_crashed_timed_out_or_was_not_built_is_a_failure(self):
        configured = {"id": {"targetConfigured": {"label": "//c"}}, "configured": {"testSize": "SMALL"}}
        xml = '<testsuites name="AllTests"><testcase name="a" classname="S" status="run"/></testsuites>'
        count = count_tests.count_events(
            self.events(configured, self.result("//a", "TIMEOUT", "file:///a"), self.result("//b", "FAILED", "file:///b")),
            lambda uri: xml if uri == "file:///a" else "<cut")
        self.assertEqual(count.line(), "1 passed, 3 failed, 0 skipped")

    def test_nothing_run_is_a_failure(self):
        self.assertEqual(count_tests.main([os.devnull]), 1)


if __name__ == "__main__":
    unittest.main()
