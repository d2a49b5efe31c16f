#include "daemon/training/tensor_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace isthmus {
namespace {

using ::testing::HasSubstr;

ModelShape SmallShape() {
  ModelShape s;
  s.vocabulary = 11;
  s.width = 8;
  s.layers = 2;
  s.heads = 4;
  s.kv_heads = 2;
  s.feed_forward = 12;
  s.context = 16;
  return s;
}

std::string MessageFor(const ModelShape& s) {
  return std::string(TensorTable::ForModel(s).status().message());
}

TEST(TensorTable, NamesAndOrdersTensorsAsHuggingFaceDoes) {
  ModelShape s = SmallShape();
  s.is_head_tied = false;
  const auto table = TensorTable::ForModel(s);
  ASSERT_TRUE(table.ok()) << table.status();
  std::vector<std::string> first;
  for (int i = 0; i < 10; ++i) first.push_back(table->tensors()[i].name);
  EXPECT_THAT(first,
              testing::ElementsAre(
                  "model.embed_tokens.weight", "model.layers.0.self_attn.q_proj.weight",
                  "model.layers.0.self_attn.k_proj.weight", "model.layers.0.self_attn.v_proj.weight",
                  "model.layers.0.self_attn.o_proj.weight", "model.layers.0.mlp.gate_proj.weight",
                  "model.layers.0.mlp.up_proj.weight", "model.layers.0.mlp.down_proj.weight",
                  "model.layers.0.input_layernorm.weight", "model.layers.0.post_attention_layernorm.weight"));
  ASSERT_EQ(table->tensors().size(), 1 + 2 * 9 + 2);
  EXPECT_EQ(table->tensors()[19].name, "model.norm.weight");
  EXPECT_EQ(table->tensors()[20].name, "lm_head.weight");
  EXPECT_THAT(table->tensors()[2].shape, testing::ElementsAre(4, 8));
  EXPECT_THAT(table->tensors()[7].shape, testing::ElementsAre(8, 12));
}

TEST(TensorTable, TheDemoModelHas824KValues) {
  const auto table = TensorTable::ForModel(ModelShape());
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(table->layout().total(), 256 * 128 + 4 * (4 * 128 * 128 + 3 * 128 * 344 + 2 * 128) + 128);
  EXPECT_EQ(table->layout().offset(1), 256 * 128);
  EXPECT_EQ(table->layout().row_length(0), 128);
  EXPECT_EQ(table->layout().rows(0), 256);
  EXPECT_EQ(table->layout().row_length(table->layout().tensors() - 1), 0);  // a vector
}

TEST(TensorTable, OnlyMatricesAreDecayed) {
  const auto table = TensorTable::ForModel(SmallShape());
  ASSERT_TRUE(table.ok());
  for (const TensorInfo& t : table->tensors()) EXPECT_EQ(t.is_decayed, t.shape.size() == 2) << t.name;
}

TEST(TensorTable, LayoutDigestIsTheGoldenOne) {
  const auto table = TensorTable::ForModel(ModelShape());
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(table->layout().digest(), 3831725124480455770u);
}

TEST(TensorTable, LayoutDigestSeesNamesShapesAndOrder) {
  const auto digest = [](std::vector<TensorInfo> tensors) {
    return TensorTable::FromTensors(std::move(tensors)).value().layout().digest();
  };
  const uint64_t base = digest({{"a", {2, 3}}, {"b", {6}}});
  EXPECT_EQ(base, digest({{"a", {2, 3}}, {"b", {6}}}));
  EXPECT_NE(base, digest({{"a", {3, 2}}, {"b", {6}}}));
  EXPECT_NE(base, digest({{"c", {2, 3}}, {"b", {6}}}));
  EXPECT_NE(base, digest({{"b", {6}}, {"a", {2, 3}}}));
}

TEST(TensorTable, InitialValuesAreTheGoldenOnes) {
  const auto table = TensorTable::ForModel(ModelShape());
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(table->StateDigestOf({}, table->InitialValues(1), {}).ToHex(),
            "b08e72b461009fc5e467221127f0d25e");
}

TEST(TensorTable, InitialValuesHaveTheStudysDeviations) {
  const auto table = TensorTable::ForModel(ModelShape());
  ASSERT_TRUE(table.ok());
  const std::vector<float> values = table->InitialValues(7);
  for (int t = 0; t < table->layout().tensors(); ++t) {
    const TensorInfo& info = table->tensors()[t];
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < table->layout().size(t); ++i) {
      const double v = values[table->layout().offset(t) + i];
      sum += v;
      squares += v * v;
    }
    const double n = table->layout().size(t);
    if (info.init == TensorInit::kOnes) {
      EXPECT_EQ(sum, n) << info.name;
      continue;
    }
    double want = 1 / std::sqrt(static_cast<double>(info.shape[1]));
    if (t == 0) want = 0.02;
    if (info.name.find("o_proj") != std::string::npos || info.name.find("down_proj") != std::string::npos) {
      want /= std::sqrt(8.0);
    }
    EXPECT_NEAR(std::sqrt(squares / n), want, 0.03 * want) << info.name;
    EXPECT_NEAR(sum / n, 0, 5 * want / std::sqrt(n)) << info.name;
  }
}

TEST(TensorTable, OtherSeedsGiveOtherValues) {
  const auto table = TensorTable::ForModel(SmallShape());
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(table->InitialValues(3), table->InitialValues(3));
  EXPECT_NE(table->InitialValues(3), table->InitialValues(4));
}

TEST(TensorTable, ImpossibleShapesNameTheField) {
  ModelShape s = SmallShape();
  s.layers = 0;
  EXPECT_THAT(MessageFor(s), HasSubstr("layers is 0"));
  s = SmallShape();
  s.width = 10;
  EXPECT_THAT(MessageFor(s), HasSubstr("width 10 does not divide into 4 heads"));
  s = SmallShape();
  s.width = 12;
  EXPECT_THAT(MessageFor(s), HasSubstr("heads of width 3 are odd"));
  s = SmallShape();
  s.kv_heads = 3;
  EXPECT_THAT(MessageFor(s), HasSubstr("kv_heads 3 does not divide heads 4"));
  s = SmallShape();
  s.rotary_base = NAN;
  EXPECT_THAT(MessageFor(s), HasSubstr("rotary_base"));
  s = SmallShape();
  s.vocabulary = int64_t{1} << 24;
  s.width = 1 << 20;
  EXPECT_THAT(MessageFor(s), HasSubstr("model.embed_tokens.weight"));
}

TEST(TensorTable, RefusesTensorsWithoutNameOrShapeAndRepeatedNames) {
  EXPECT_FALSE(TensorTable::FromTensors({}).ok());
  EXPECT_FALSE(TensorTable::FromTensors({{"", {1}}}).ok());
  EXPECT_FALSE(TensorTable::FromTensors({{"a", {}}}).ok());
  EXPECT_FALSE(TensorTable::FromTensors({{"a", {0}}}).ok());
  EXPECT_THAT(std::string(TensorTable::FromTensors({{"a", {1}}, {"a", {2}}}).status().message()),
              HasSubstr("tensor a is named twice"));
}

}  // namespace
}  // namespace isthmus
