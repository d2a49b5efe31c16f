#include "daemon/app/run_data.h"

namespace isthmus {

absl::StatusOr<std::unique_ptr<TokenFile>> OpenRunData(const std::string& path, const RunFile& run) {
  TokenFileOptions options;
  options.form = run.data().format() == DataConfig::UINT16   ? TokenForm::kUint16
                 : run.data().format() == DataConfig::UINT32 ? TokenForm::kUint32
                                                             : TokenForm::kBytes;
  options.vocabulary = run.model().vocabulary();
  options.context = run.model().context();
  return TokenFile::Open(path, options);
}

InnerOptimizerOptions InnerOptimizerOf(const InnerConfig& inner) {
  InnerOptimizerOptions options;
  options.beta1 = inner.beta1();
  options.beta2 = inner.beta2();
  options.epsilon = inner.epsilon();
  options.weight_decay = inner.weight_decay();
  options.clip_norm = inner.clip_norm();
  return options;
}

}  // namespace isthmus
