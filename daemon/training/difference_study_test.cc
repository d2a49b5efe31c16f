#include "daemon/training/difference_study.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

namespace isthmus {
namespace {

using ::testing::HasSubstr;

// One tensor of one block, 64 wide; sites 0 and 1 in rounds 5 and 6.
class DifferenceStudyTest : public testing::Test {
 protected:
  DifferenceStudyTest()
      : folder_(testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(folder_);
    TensorInfo tensor;
    tensor.name = "weight";
    tensor.shape = {64, 64};
    dump_ = DifferenceDump::Create(folder_, TensorTable::FromTensors({tensor}).value()).value();
  }

  // `magnitude` at 64 places from `first` on, 1/64 elsewhere; signs alternate.
  static std::vector<float> Peaks(int first, float magnitude) {
    std::vector<float> values(4096);
    for (int i = 0; i < 4096; ++i) {
      values[i] = (i % 2 ? -1.0f : 1.0f) * (i >= first && i < first + 64 ? magnitude : 0.015625f);
    }
    return values;
  }

  DensityStudy Study(int64_t k) {
    EXPECT_TRUE(dump_->Finish().ok());
    study_ = StudyDifferences(OpenDifferences(folder_).value(), {k}).value();
    return study_.densities[0];
  }

  const std::string folder_;
  absl::StatusOr<DifferenceDump> dump_ = absl::UnknownError("");
  DifferenceStudy study_;
};

TEST_F(DifferenceStudyTest, EqualMagnitudesHaveNoTailAndAreTakenOffWhole) {
  ASSERT_TRUE(dump_->Add(5, 0, Peaks(128, 1)).ok());
  const DensityStudy s = Study(64);
  EXPECT_EQ(s.equal_k[1], 64);
  EXPECT_EQ(s.equal_k[2], 55);
  EXPECT_EQ(s.equal_k[3], 47);
  ASSERT_EQ(s.tensors.size(), 1);
  const double energy = 64 + 4032 / 4096.0;
  EXPECT_EQ(s.tensors[0].kept, 64);
  EXPECT_DOUBLE_EQ(s.tensors[0].tail, 1);
  EXPECT_DOUBLE_EQ(s.tensors[0].kept_energy, 64 / energy);
  EXPECT_DOUBLE_EQ(s.tensors[0].captured[1], 64 / energy);
  EXPECT_DOUBLE_EQ(s.tensors[0].captured[3], 47 / energy);
  // Two whole rows: by row nearly free.
  EXPECT_LT(s.tensors[0].row_bits, 0.5 * s.tensors[0].plain_bits);
  EXPECT_DOUBLE_EQ(study_.energy_share[0], 1);
}

TEST_F(DifferenceStudyTest, SharedPlacesRaiseTheContributors) {
  ASSERT_TRUE(dump_->Add(5, 0, Peaks(0, 1)).ok());
  ASSERT_TRUE(dump_->Add(5, 1, Peaks(32, 1)).ok());
  const DensityStudy s = Study(64);
  EXPECT_DOUBLE_EQ(s.contributors, 128.0 / 96);
  EXPECT_NEAR(s.contributors_by_chance, 128 / (4096 * (1 - std::pow(1 - 1 / 64.0, 2))), 1e-9);
  EXPECT_EQ(s.kept_again, 0);
}

TEST_F(DifferenceStudyTest, TheSamePlacesTheNextRoundAreKeptAgain) {
  ASSERT_TRUE(dump_->Add(5, 0, Peaks(64, 1)).ok());
  ASSERT_TRUE(dump_->Add(6, 0, Peaks(64, 2)).ok());
  const DensityStudy s = Study(64);
  EXPECT_DOUBLE_EQ(s.kept_again, 64);  // always, where chance would give 1 in 64
  EXPECT_LT(s.tensors[0].before_bits, 0.5 * s.tensors[0].before_plain_bits);
  const std::string table = DifferenceTable(study_);
  EXPECT_THAT(table, HasSubstr("2 differences"));
  EXPECT_THAT(table, HasSubstr("kept again the next round: 64.00 times"));
}

TEST_F(DifferenceStudyTest, RefusesAnImpossibleDensityAndAnEmptySet) {
  ASSERT_TRUE(dump_->Finish().ok());
  EXPECT_EQ(StudyDifferences(OpenDifferences(folder_).value(), {64}).status().code(),
            absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(dump_->Add(5, 0, Peaks(64, 1)).ok());
  ASSERT_TRUE(dump_->Finish().ok());
  EXPECT_EQ(StudyDifferences(OpenDifferences(folder_).value(), {0}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace isthmus
