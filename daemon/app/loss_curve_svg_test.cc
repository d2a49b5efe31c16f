#include "daemon/app/loss_curve_svg.h"

#include "daemon/app/sample_status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace isthmus {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(LossCurveSvg, DrawsBothCurvesOverTheTokens) {
  const std::string svg = LossCurveSvg(SampleFinishedStatus());
  EXPECT_THAT(svg, StartsWith("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"800\" height=\"440\""));
  EXPECT_THAT(svg, HasSubstr("kjv: 3 rounds"));
  EXPECT_EQ(
      svg,
      R"text(<svg xmlns="http://www.w3.org/2000/svg" width="800" height="440" viewBox="0 0 800 440" font-family="sans-serif" font-size="12">
<rect width="100%" height="100%" fill="white"/>
<text x="64.0" y="20.0" text-anchor="start">kjv: 3 rounds</text>
<line x1="64.0" y1="344.9" x2="776.0" y2="344.9" stroke="#ddd"/>
<text x="56.0" y="348.9" text-anchor="end">2</text>
<line x1="64.0" y1="265.6" x2="776.0" y2="265.6" stroke="#ddd"/>
<text x="56.0" y="269.6" text-anchor="end">3</text>
<line x1="64.0" y1="186.2" x2="776.0" y2="186.2" stroke="#ddd"/>
<text x="56.0" y="190.2" text-anchor="end">4</text>
<line x1="64.0" y1="106.8" x2="776.0" y2="106.8" stroke="#ddd"/>
<text x="56.0" y="110.8" text-anchor="end">5</text>
<line x1="64.0" y1="48.0" x2="64.0" y2="384.0" stroke="#eee"/>
<text x="64.0" y="402.0" text-anchor="middle">0</text>
<line x1="156.7" y1="48.0" x2="156.7" y2="384.0" stroke="#eee"/>
<text x="156.7" y="402.0" text-anchor="middle">10.0k</text>
<line x1="249.4" y1="48.0" x2="249.4" y2="384.0" stroke="#eee"/>
<text x="249.4" y="402.0" text-anchor="middle">20.0k</text>
<line x1="342.1" y1="48.0" x2="342.1" y2="384.0" stroke="#eee"/>
<text x="342.1" y="402.0" text-anchor="middle">30.0k</text>
<line x1="434.8" y1="48.0" x2="434.8" y2="384.0" stroke="#eee"/>
<text x="434.8" y="402.0" text-anchor="middle">40.0k</text>
<line x1="527.5" y1="48.0" x2="527.5" y2="384.0" stroke="#eee"/>
<text x="527.5" y="402.0" text-anchor="middle">50.0k</text>
<line x1="620.2" y1="48.0" x2="620.2" y2="384.0" stroke="#eee"/>
<text x="620.2" y="402.0" text-anchor="middle">60.0k</text>
<line x1="713.0" y1="48.0" x2="713.0" y2="384.0" stroke="#eee"/>
<text x="713.0" y="402.0" text-anchor="middle">70.0k</text>
<text x="420.0" y="426.0" text-anchor="middle">tokens in committed contributions</text>
<text transform="translate(18,216.0) rotate(-90)" text-anchor="middle">loss, nats per token</text>
<polyline fill="none" stroke="#8aa4c8" stroke-width="1.5" points="396.3,217.1 586.1,286.2 776.0,364.8"/>
<polyline fill="none" stroke="#c0392b" stroke-width="2" points="64.0,63.3 396.3,256.0 776.0,368.7"/>
<line x1="520" y1="32" x2="544" y2="32" stroke="#8aa4c8" stroke-width="1.5"/>
<text x="550.0" y="36.0" text-anchor="start">training</text>
<line x1="640" y1="32" x2="664" y2="32" stroke="#c0392b" stroke-width="2"/>
<text x="670.0" y="36.0" text-anchor="start">held-out</text>
</svg>
)text");
}

TEST(LossCurveSvg, SaysSoWhenThereIsNothingToDraw) {
  RunStatus status;
  status.set_run_name("a<b");
  const std::string svg = LossCurveSvg(status);
  EXPECT_THAT(svg, HasSubstr("too few rounds for a curve"));
  EXPECT_THAT(svg, HasSubstr("a&lt;b: 0 rounds"));
}

TEST(LossCurveSvg, PassesOverRoundsWithoutAHeldOutLoss) {
  RunStatus status = SampleFinishedStatus();
  status.set_held_out_loss_start(0);
  status.mutable_commits(0)->set_held_out_tokens(0);
  status.mutable_commits(2)->set_held_out_tokens(0);
  EXPECT_EQ(LossCurveSvg(status).find("stroke=\"#c0392b\" stroke-width=\"2\" points"), std::string::npos);
}

}  // namespace
}  // namespace isthmus
