#include "daemon/training/token_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status.h"
#include "daemon/training/permutation.h"

namespace isthmus {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tokens are little-endian");

constexpr int64_t kSubsetTokens = 8192;
constexpr int64_t kHeldOutRows = 32;
constexpr uint64_t kSubsetSeed = 0x68656c64;  // fixed, so that every run's subset is the same one

int64_t BytesOf(TokenForm form) {
  switch (form) {
    case TokenForm::kBytes:
      return 1;
    case TokenForm::kUint16:
      return 2;
    case TokenForm::kUint32:
      return 4;
  }
  return 1;
}

absl::Status OpenError(const std::string& path) {
  const std::string text = absl::StrCat("data file ", path, ": ", std::strerror(errno));
  if (errno == ENOENT || errno == ENOTDIR) return absl::NotFoundError(text);
  if (errno == EACCES || errno == EPERM) return absl::PermissionDeniedError(text);
  return absl::InternalError(text);
}

absl::Status CheckOptions(const TokenFileOptions& o) {
  if (o.vocabulary < 1 || o.vocabulary > INT32_MAX) {
    return absl::InvalidArgumentError(absl::StrCat("data: vocabulary is ", o.vocabulary));
  }
  if (o.context < 1 || o.context > INT32_MAX) {
    return absl::InvalidArgumentError(absl::StrCat("data: context is ", o.context));
  }
  if (!(o.held_out_fraction >= 0 && o.held_out_fraction < 1) || o.held_out_most < 0) {
    return absl::InvalidArgumentError(absl::StrCat("data: held-out share is ", o.held_out_fraction,
                                                   ", at most ", o.held_out_most, " tokens"));
  }
  return absl::OkStatus();
}

// The first token that is not below `vocabulary`, or `count`.
template <typename T>
int64_t FirstBeyond(const char* data, int64_t count, uint64_t vocabulary) {
  for (int64_t i = 0; i < count; ++i) {
    T token;
    std::memcpy(&token, data + i * sizeof(T), sizeof(T));
    if (token >= vocabulary) return i;
  }
  return count;
}

// Of the bytes at `path` now, which may be another file than the one that is open.
absl::StatusOr<Digest> DigestOfFile(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return OpenError(path);
  struct stat info;
  Digest digest = DigestOf(absl::string_view());
  absl::Status status;
  if (fstat(file, &info) != 0) {
    status = OpenError(path);
  } else if (info.st_size > 0) {
    void* mapped = mmap(nullptr, info.st_size, PROT_READ, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED) {
      status = OpenError(path);
    } else {
      digest = DigestOf(absl::string_view(static_cast<const char*>(mapped), info.st_size));
      munmap(mapped, info.st_size);
    }
  }
  close(file);
  if (!status.ok()) return status;
  return digest;
}

}  // namespace

absl::StatusOr<TokenForm> ParseTokenForm(absl::string_view text) {
  if (text == "bytes") return TokenForm::kBytes;
  if (text == "uint16") return TokenForm::kUint16;
  if (text == "uint32") return TokenForm::kUint32;
  return absl::InvalidArgumentError(absl::StrCat("token form '", text, "' is none of bytes, uint16, uint32"));
}

absl::StatusOr<std::unique_ptr<TokenFile>> TokenFile::Open(const std::string& path,
                                                           const TokenFileOptions& options) {
  ISTHMUS_RETURN_IF_ERROR(CheckOptions(options));
  std::unique_ptr<TokenFile> file(new TokenFile(path, options));
  ISTHMUS_RETURN_IF_ERROR(file->Map());
  ISTHMUS_RETURN_IF_ERROR(file->CheckTokens());
  ISTHMUS_RETURN_IF_ERROR(file->Divide());
  file->digest_ = DigestOf(absl::string_view(file->data_, file->size_bytes_));
  return file;
}

TokenFile::~TokenFile() {
  if (data_ != nullptr) munmap(const_cast<char*>(data_), size_bytes_);
  if (file_ >= 0) close(file_);
}

absl::Status TokenFile::Map() {
  file_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (file_ < 0) return OpenError(path_);
  struct stat info;
  if (fstat(file_, &info) != 0) return OpenError(path_);
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat("data file ", path_, " is not a regular file"));
  }
  size_bytes_ = info.st_size;
  changed_seconds_ = info.st_mtim.tv_sec;
  changed_nanoseconds_ = info.st_mtim.tv_nsec;
  if (size_bytes_ == 0) return absl::InvalidArgumentError(absl::StrCat("data file ", path_, " is empty"));
  if (size_bytes_ % BytesOf(options_.form) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("data file ", path_, " has ", size_bytes_,
                                                   " bytes, no whole number of tokens of ",
                                                   BytesOf(options_.form), " bytes"));
  }
  tokens_ = size_bytes_ / BytesOf(options_.form);
  void* mapped = mmap(nullptr, size_bytes_, PROT_READ, MAP_SHARED, file_, 0);
  if (mapped == MAP_FAILED) return OpenError(path_);
  data_ = static_cast<const char*>(mapped);
  return absl::OkStatus();
}

absl::Status TokenFile::CheckTokens() const {
  int64_t bad = tokens_;
  const uint64_t vocabulary = options_.vocabulary;
  if (options_.form == TokenForm::kBytes && vocabulary < 256) {
    bad = FirstBeyond<uint8_t>(data_, tokens_, vocabulary);
  } else if (options_.form == TokenForm::kUint16) {
    bad = FirstBeyond<uint16_t>(data_, tokens_, vocabulary);
  } else if (options_.form == TokenForm::kUint32) {
    bad = FirstBeyond<uint32_t>(data_, tokens_, vocabulary);
  }
  if (bad == tokens_) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("data file ", path_, ": token ",
                                                 static_cast<uint32_t>(TokenAt(bad)), " at offset ", bad,
                                                 " is beyond the vocabulary of ", vocabulary));
}

absl::Status TokenFile::Divide() {
  const int64_t row = options_.context + 1;
  const int64_t share = static_cast<int64_t>(static_cast<double>(tokens_) * options_.held_out_fraction);
  const int64_t held = std::max(row, std::min(options_.held_out_most, share));
  if (tokens_ < held + row) {
    return absl::InvalidArgumentError(
        absl::StrCat("data file ", path_, " has ", tokens_,
                     " tokens, too few for one training and one held-out sequence of ", options_.context,
                     " (", held + row, " tokens)"));
  }
  held_out_start_ = tokens_ - held;
  training_sequences_ = (held_out_start_ - 1) / options_.context;
  held_out_sequences_ = (held - 1) / options_.context;
  return absl::OkStatus();
}

int32_t TokenFile::TokenAt(int64_t index) const {
  switch (options_.form) {
    case TokenForm::kBytes:
      return static_cast<unsigned char>(data_[index]);
    case TokenForm::kUint16: {
      uint16_t token;
      std::memcpy(&token, data_ + index * 2, sizeof token);
      return token;
    }
    case TokenForm::kUint32: {
      uint32_t token;
      std::memcpy(&token, data_ + index * 4, sizeof token);
      return static_cast<int32_t>(token);
    }
  }
  return 0;
}

void TokenFile::AppendRow(int64_t start, std::vector<int32_t>* out) const {
  for (int64_t i = 0; i <= options_.context; ++i) out->push_back(TokenAt(start + i));
}

bool TokenFile::IsStillWhole() const {
  struct stat info;
  return fstat(file_, &info) == 0 && info.st_size >= size_bytes_;
}

absl::StatusOr<Batch> TokenFile::TrainingBatch(absl::Span<const int64_t> sequences) const {
  if (!IsStillWhole()) {
    return absl::FailedPreconditionError(
        absl::StrCat("data file ", path_, " is shorter than when it was opened"));
  }
  Batch batch;
  batch.sequences = sequences.size();
  batch.length = options_.context;
  batch.tokens.reserve(batch.sequences * (batch.length + 1));
  for (int64_t s : sequences) {
    if (s < 0 || s >= training_sequences_) {
      return absl::InvalidArgumentError(absl::StrCat("sequence ", s, " is not among the ",
                                                     training_sequences_, " training sequences of ", path_));
    }
    AppendRow(s * options_.context, &batch.tokens);
  }
  return batch;
}

std::vector<Batch> TokenFile::HeldOutBatches(bool whole) const {
  const int64_t subset = (kSubsetTokens + options_.context - 1) / options_.context;
  const int64_t count = whole ? held_out_sequences_ : std::min(subset, held_out_sequences_);
  std::vector<int64_t> chosen;
  const PassPermutation order(held_out_sequences_, kSubsetSeed, 0);
  for (int64_t i = 0; i < count; ++i) chosen.push_back(whole ? i : order.At(i));
  std::sort(chosen.begin(), chosen.end());
  std::vector<Batch> batches;
  if (!IsStillWhole()) return batches;
  for (int64_t i = 0; i < count; ++i) {
    if (i % kHeldOutRows == 0) batches.push_back({0, options_.context, {}});
    AppendRow(held_out_start_ + chosen[i] * options_.context, &batches.back().tokens);
    ++batches.back().sequences;
  }
  return batches;
}

absl::Status TokenFile::CheckUnchanged() const {
  struct stat info;
  if (stat(path_.c_str(), &info) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("data file ", path_, " cannot be found any more: ", std::strerror(errno)));
  }
  if (info.st_size != size_bytes_) {
    return absl::FailedPreconditionError(
        absl::StrCat("data file ", path_, " changed since the run began: it has ",
                     static_cast<int64_t>(info.st_size), " bytes and had ", size_bytes_));
  }
  const bool same_time =
      info.st_mtim.tv_sec == changed_seconds_ && info.st_mtim.tv_nsec == changed_nanoseconds_;
  if (same_time) return absl::OkStatus();
  ISTHMUS_ASSIGN_OR_RETURN(const Digest now, DigestOfFile(path_));
  if (now == digest_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("data file ", path_, " changed since the run began: same size, other contents"));
}

}  // namespace isthmus
