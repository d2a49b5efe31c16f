#include "daemon/app/human_units.h"

#include <cmath>
#include <string>

#include "gtest/gtest.h"

namespace isthmus {
namespace {

TEST(HumanUnits, BytesHaveThreeDigitsAndAUnit) {
  EXPECT_EQ(HumanBytes(0), "0 B");
  EXPECT_EQ(HumanBytes(999), "999 B");
  EXPECT_EQ(HumanBytes(1000), "1.00 kB");
  EXPECT_EQ(HumanBytes(12345), "12.3 kB");
  EXPECT_EQ(HumanBytes(999499), "999 kB");
  EXPECT_EQ(HumanBytes(999500), "1.00 MB");
  EXPECT_EQ(HumanBytes(4560000000), "4.56 GB");
}

TEST(HumanUnits, CountsAndRates) {
  EXPECT_EQ(HumanCount(0), "0");
  EXPECT_EQ(HumanCount(9.876), "9.88");
  EXPECT_EQ(HumanCount(40), "40");
  EXPECT_EQ(HumanCount(15360), "15.4k");
  EXPECT_EQ(HumanCount(1830000), "1.83M");
  EXPECT_EQ(HumanCount(std::nan("")), "-");
}

TEST(HumanUnits, SecondsGrowIntoMinutesHoursAndDays) {
  EXPECT_EQ(HumanSeconds(0), "0.00 s");
  EXPECT_EQ(HumanSeconds(0.123), "0.12 s");
  EXPECT_EQ(HumanSeconds(34.52), "34.5 s");
  EXPECT_EQ(HumanSeconds(725), "12m 05s");
  EXPECT_EQ(HumanSeconds(11220), "3h 07m");
  EXPECT_EQ(HumanSeconds(187200), "2d 04h");
  EXPECT_EQ(HumanSeconds(-1), "-");
}

TEST(HumanUnits, NothingMeasuredIsADash) {
  EXPECT_EQ(HumanLoss(0), "-");
  EXPECT_EQ(HumanLoss(std::nan("")), "-");
  EXPECT_EQ(HumanLoss(1.48), "1.4800");
  EXPECT_EQ(HumanShare(1, 0), "-");
  EXPECT_EQ(HumanShare(1, 8), "12.5 %");
  EXPECT_EQ(ShortDigest(""), "-");
}

TEST(HumanUnits, DigestsAreHexadecimal) {
  const std::string bytes("\x01\x23\x45\x67\x89\xab\xcd\xef\x00\x11\x22\x33\x44\x55\x66\x77", 16);
  EXPECT_EQ(ShortDigest(bytes), "01234567");
  EXPECT_EQ(FullDigest(bytes), "0123456789abcdef0011223344556677");
}

}  // namespace
}  // namespace isthmus
