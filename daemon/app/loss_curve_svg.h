// The losses of a run over its tokens as an SVG drawing. Pure: the same commits give the same bytes.
#ifndef ISTHMUS_DAEMON_APP_LOSS_CURVE_SVG_H_
#define ISTHMUS_DAEMON_APP_LOSS_CURVE_SVG_H_

#include <string>

#include "protos/status.pb.h"

namespace isthmus {

// Training loss and held-out loss (of the anchor) against the tokens in committed contributions, with axes, a
// legend and the number of rounds; a whole document. Points that were not measured are passed over; with
// fewer than two rounds the drawing says so.
std::string LossCurveSvg(const RunStatus& status);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_LOSS_CURVE_SVG_H_
