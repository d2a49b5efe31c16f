#include "daemon/coordinator/anchor_keeper.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compression/recompress.h"
#include "daemon/base/status.h"
#include "daemon/store/commit_record.h"
#include "daemon/store/snapshot.h"

namespace isthmus {

void AnchorKeeper::BeginNew(uint64_t seed) { BeginWith(table_.InitialValues(seed)); }

void AnchorKeeper::BeginWith(std::vector<float> weights) {
  stamp_ = StateStamp();
  anchor_ = std::move(weights);
  momentum_.clear();
  residual_.reset();
}

absl::Status AnchorKeeper::Recover(Ledger* ledger, const LedgerState& state) {
  if (state.snapshots.empty()) return absl::DataLossError("the state directory has no snapshot");
  const SnapshotInfo& newest = state.snapshots.back();
  BlobName name;
  name.kind = SNAPSHOT;
  name.round = newest.round();
  ISTHMUS_ASSIGN_OR_RETURN(const std::shared_ptr<const BlobSource> blob, ledger->OpenBlob(name));
  absl::StatusOr<Snapshot> snapshot = ReadSnapshot(table_, *blob);
  if (!snapshot.ok()) {
    return Annotate(snapshot.status(),
                    absl::StrCat("the state directory's snapshot of round ", newest.round()));
  }
  stamp_ = StampOf(snapshot->info);
  anchor_ = std::move(snapshot->values.anchor);
  momentum_ = std::move(snapshot->values.momentum);
  for (const CommitRecord& record : state.commits) {
    if (record.key().round() > newest.round()) ISTHMUS_RETURN_IF_ERROR(Replay(ledger, record));
  }
  if (!state.commits.empty() && AnchorDigest().ToBytes() != state.commits.back().state_digest()) {
    return absl::DataLossError(absl::StrCat("the anchor rebuilt for round ",
                                            state.commits.back().key().round(),
                                            " has not the digest that was committed"));
  }
  return RecoverResidual(ledger, state);
}

absl::Status AnchorKeeper::RecoverResidual(Ledger* ledger, const LedgerState& state) {
  residual_.reset();
  lost_residual_.reset();
  if (state.commits.empty() || state.commits.back().residual_digest().empty()) return absl::OkStatus();
  const CommitRecord& last = state.commits.back();
  for (const EventRecord& e : state.events) {
    if (e.kind() == EventRecord::HUB_FORFEITED && e.round() == last.key().round()) return absl::OkStatus();
  }
  const auto read = [&]() -> absl::StatusOr<std::vector<float>> {
    BlobName name;
    name.kind = RESIDUAL;
    name.round = last.key().round();
    name.fragment = last.key().fragment();
    ISTHMUS_ASSIGN_OR_RETURN(const std::shared_ptr<const BlobSource> blob, ledger->OpenBlob(name));
    std::vector<float> values(anchor_.size());
    const int64_t bytes = static_cast<int64_t>(values.size() * sizeof(float));
    if (blob->size() != bytes) {
      return absl::DataLossError(absl::StrCat("it has ", blob->size(), " bytes, not ", bytes));
    }
    ISTHMUS_ASSIGN_OR_RETURN(const std::string read, blob->Read(0, bytes));
    if (DigestOf(absl::string_view(read)).ToBytes() != last.residual_digest()) {
      return absl::DataLossError("its digest is not the one committed");
    }
    std::memcpy(values.data(), read.data(), read.size());
    return values;
  };
  absl::StatusOr<std::vector<float>> values = read();
  if (values.ok()) {
    residual_ = std::make_shared<const std::vector<float>>(*std::move(values));
  } else {
    lost_residual_ = {last.key().round(), last.residual_square_sum(), std::string(values.status().message())};
  }
  return absl::OkStatus();
}

absl::StatusOr<Update> AnchorKeeper::EncodeAnew(const std::string& codec, const Update& exact) {
  auto residual = residual_ == nullptr ? std::make_shared<std::vector<float>>(anchor_.size())
                                       : std::make_shared<std::vector<float>>(*residual_);
  absl::StatusOr<Update> update;
  if (codec == kFlushUpdate) {
    update = FlushResidual(table_.layout(), exact, absl::MakeSpan(*residual));
  } else {
    ISTHMUS_ASSIGN_OR_RETURN(const std::unique_ptr<Codec> parsed, ParseCodecSpec(codec));
    update = Recompress(table_.layout(), *parsed, exact, absl::MakeSpan(*residual));
  }
  if (update.ok()) residual_ = std::move(residual);
  return update;
}

absl::Status AnchorKeeper::Replay(Ledger* ledger, const CommitRecord& record) {
  BlobName name;
  name.kind = UPDATE;
  name.round = record.key().round();
  name.fragment = record.key().fragment();
  ISTHMUS_ASSIGN_OR_RETURN(const std::shared_ptr<const BlobSource> blob, ledger->OpenBlob(name));
  ISTHMUS_ASSIGN_OR_RETURN(const std::string bytes, blob->Read(0, blob->size()));
  if (DigestOf(absl::string_view(bytes)).ToBytes() != record.update_digest()) {
    return absl::DataLossError(absl::StrCat("the update of round ", name.round, " on disk is damaged"));
  }
  ISTHMUS_RETURN_IF_ERROR(DecodeUpdate(table_.layout(), bytes, &update_scratch_, &update_));
  if (record.is_nesterov() && momentum_.empty()) momentum_.assign(anchor_.size(), 0.0f);
  ISTHMUS_RETURN_IF_ERROR(ops_->ApplyToAnchor(table_.layout(), update_, OuterStepOf(record),
                                              absl::MakeSpan(anchor_), absl::MakeSpan(momentum_)));
  stamp_ = StampOf(record);
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const CheckedFrame>> AnchorKeeper::Check(const std::string& spec,
                                                                        absl::string_view frame) const {
  ISTHMUS_ASSIGN_OR_RETURN(const std::unique_ptr<Codec> codec, ParseCodecSpec(spec));
  auto checked = std::make_shared<CheckedFrame>();
  ISTHMUS_RETURN_IF_ERROR(codec->Check(table_.layout(), frame, checked.get()));
  return checked;
}

absl::StatusOr<AnchorKeeper::Result> AnchorKeeper::CommitRound(
    const CommitRecord& record, absl::Span<const std::shared_ptr<const CheckedFrame>> frames,
    Averaging averaging) {
  Result result;
  std::vector<const DecodedFrame*> decoded;
  for (const auto& frame : frames) decoded.push_back(&frame->decoded);  // heads are enough
  result.implausible = exponents_.Check(decoded);
  std::vector<WeightedFrame> weighted(frames.size());
  for (size_t i = 0; i < frames.size(); ++i) {
    weighted[i].checked = frames[i].get();
    weighted[i].weight = record.included(static_cast<int>(i)).weight();
  }
  for (const ImplausibleTensor& t : result.implausible) weighted[t.frame].refused.push_back(t.tensor);
  if (record.is_nesterov() && momentum_.empty()) momentum_.assign(anchor_.size(), 0.0f);
  if (record.update_codec().empty()) {
    ISTHMUS_RETURN_IF_ERROR(ops_->SumAndApply(table_.layout(), weighted, averaging, OuterStepOf(record),
                                              absl::MakeSpan(anchor_), absl::MakeSpan(momentum_), &update_));
  } else {
    ISTHMUS_ASSIGN_OR_RETURN(update_, ops_->Sum(table_.layout(), weighted, averaging));
    ISTHMUS_ASSIGN_OR_RETURN(update_, EncodeAnew(record.update_codec(), update_));
    result.residual = residual_;
    result.residual_square_sum = SquareSum(*residual_);
    ISTHMUS_RETURN_IF_ERROR(ops_->ApplyToAnchor(table_.layout(), update_, OuterStepOf(record),
                                                absl::MakeSpan(anchor_), absl::MakeSpan(momentum_)));
  }
  exponents_.Committed(decoded, result.implausible);
  result.update = EncodeUpdate(table_.layout(), update_, &update_scratch_);
  stamp_ = StampOf(record);
  result.state_digest = AnchorDigest();
  for (size_t t = 0; t < update_.tensors.size(); ++t) {
    for (uint16_t index : update_.tensors[t].left_out)
      result.left_out.emplace_back(static_cast<int>(t), index);
  }
  return result;
}

SnapshotInfo AnchorKeeper::Info() const {
  SnapshotInfo info;
  info.set_round(stamp_.round);
  info.set_schedule_step(stamp_.schedule_step);
  info.set_outer_rate_bits(stamp_.alpha_bits);
  info.set_outer_momentum_bits(stamp_.momentum_bits);
  info.set_state_digest(AnchorDigest().ToBytes());
  info.set_has_momentum(!momentum_.empty());
  return info;
}

}  // namespace isthmus
