// A site's data file as a run file wants it read, and the inner optimizer as it wants it set.
#ifndef ISTHMUS_DAEMON_APP_RUN_DATA_H_
#define ISTHMUS_DAEMON_APP_RUN_DATA_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "daemon/training/token_file.h"
#include "daemon/training/trainer.h"
#include "protos/run.pb.h"

namespace isthmus {

// `run` has its defaults. Errors as TokenFile::Open.
absl::StatusOr<std::unique_ptr<TokenFile>> OpenRunData(const std::string& path, const RunFile& run);

InnerOptimizerOptions InnerOptimizerOf(const InnerConfig& inner);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_RUN_DATA_H_
