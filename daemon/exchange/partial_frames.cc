#include "daemon/exchange/partial_frames.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/digest.h"

namespace isthmus {
namespace {

std::string Describe(const ContributionHeader& header) {
  return absl::StrCat("frame of site '", header.life().site(), "' for round ", header.key().round());
}

// Frames in progress cost their map entry too, whatever their length.
constexpr int64_t kMostFrames = 4096;

}  // namespace

PartialFrames::Key PartialFrames::KeyOf(const ContributionHeader& header) {
  return {header.life().site(), header.life().incarnation(), header.frame_digest()};
}

void PartialFrames::Erase(std::map<Key, Partial>::iterator it) {
  held_bytes_ -= it->second.bytes.size();
  partials_.erase(it);
}

absl::StatusOr<PartialFrames::Offered> PartialFrames::Offer(const ContributionHeader& header) {
  if (header.frame_bytes() < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(Describe(header), ": frame_bytes is ", header.frame_bytes()));
  }
  if (header.frame_digest().size() != 16) {
    return absl::InvalidArgumentError(absl::StrCat(Describe(header), ": frame_digest has ",
                                                   header.frame_digest().size(), " bytes, not 16"));
  }
  if (header.frame_bytes() > capacity_bytes_) {
    return absl::InvalidArgumentError(absl::StrCat(Describe(header), ": ", header.frame_bytes(),
                                                   " bytes, and the hub holds at most ", capacity_bytes_));
  }
  const Key key = KeyOf(header);
  auto it = partials_.lower_bound({key.site, 0, ""});
  while (it != partials_.end() && it->first.site == key.site && it->first.incarnation < key.incarnation) {
    Erase(it++);
  }
  it = partials_.find(key);
  if (it != partials_.end() && it->second.declared_bytes != header.frame_bytes()) {
    Erase(it);
    it = partials_.end();
  }
  if (it == partials_.end()) {
    if (static_cast<int64_t>(partials_.size()) >= kMostFrames && !EraseOldest()) {
      return absl::ResourceExhaustedError(
          absl::StrCat(Describe(header), ": ", kMostFrames, " frames are on their way already"));
    }
    it = partials_.emplace(key, Partial{"", header.frame_bytes(), 0, {}}).first;
  }
  it->second.attempts.insert(++attempts_);
  it->second.last_use = ++uses_;
  return Offered{static_cast<int64_t>(it->second.bytes.size()), attempts_};
}

void PartialFrames::Release(const ContributionHeader& header, int64_t attempt) {
  auto it = partials_.find(KeyOf(header));
  if (it == partials_.end() || it->second.attempts.erase(attempt) == 0) return;
  if (it->second.attempts.empty() && it->second.bytes.empty()) Erase(it);
}

bool PartialFrames::EraseOldest() {
  auto oldest = partials_.end();
  for (auto it = partials_.begin(); it != partials_.end(); ++it) {
    if (!it->second.attempts.empty()) continue;
    if (oldest == partials_.end() || it->second.last_use < oldest->second.last_use) oldest = it;
  }
  if (oldest == partials_.end()) return false;
  Erase(oldest);
  return true;
}

absl::Status PartialFrames::Append(const ContributionHeader& header, int64_t offset,
                                   absl::string_view piece) {
  const Key key = KeyOf(header);
  auto it = partials_.find(key);
  if (it == partials_.end()) return absl::NotFoundError(absl::StrCat(Describe(header), ": not offered"));
  const int64_t held = it->second.bytes.size();
  if (offset < 0 || offset > held) {
    return absl::InvalidArgumentError(
        absl::StrCat(Describe(header), ": piece at ", offset, ", but only ", held, " bytes are held"));
  }
  if (static_cast<int64_t>(piece.size()) > it->second.declared_bytes - offset) {
    return absl::InvalidArgumentError(absl::StrCat(Describe(header), ": piece of ", piece.size(), " at ",
                                                   offset, " passes the declared end ",
                                                   it->second.declared_bytes));
  }
  if (offset + static_cast<int64_t>(piece.size()) <= held) return absl::OkStatus();
  piece.remove_prefix(held - offset);
  while (held_bytes_ + static_cast<int64_t>(piece.size()) > capacity_bytes_) {
    if (!EraseOldest()) {
      return absl::ResourceExhaustedError(
          absl::StrCat(Describe(header), ": the hub's ", capacity_bytes_, " bytes are in use"));
    }
  }
  std::string& bytes = it->second.bytes;
  if (bytes.size() + piece.size() > bytes.capacity()) {
    // Grows with what arrives, and never past what was declared.
    bytes.reserve(std::min<size_t>(it->second.declared_bytes,
                                   std::max(2 * bytes.capacity(), bytes.size() + piece.size())));
  }
  bytes.append(piece.data(), piece.size());
  it->second.last_use = ++uses_;
  held_bytes_ += piece.size();
  return absl::OkStatus();
}

int64_t PartialFrames::HeldOf(const ContributionHeader& header) const {
  auto it = partials_.find(KeyOf(header));
  return it == partials_.end() ? 0 : it->second.bytes.size();
}

absl::StatusOr<SharedBytes> PartialFrames::Take(const ContributionHeader& header) {
  auto it = partials_.find(KeyOf(header));
  if (it == partials_.end() || static_cast<int64_t>(it->second.bytes.size()) != it->second.declared_bytes) {
    return absl::FailedPreconditionError(absl::StrCat(Describe(header), ": ", HeldOf(header), " of ",
                                                      header.frame_bytes(), " bytes are here"));
  }
  auto bytes = std::make_shared<const std::string>(std::move(it->second.bytes));
  held_bytes_ -= bytes->size();
  partials_.erase(it);
  if (DigestOf(*bytes).ToBytes() != header.frame_digest()) {
    return absl::DataLossError(absl::StrCat(Describe(header), ": digest of the ", bytes->size(),
                                            " bytes that arrived is not the declared one"));
  }
  return SharedBytes(bytes);
}

}  // namespace isthmus
