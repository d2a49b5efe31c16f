// A file of tokens as training data: plain text read as bytes, or a pre-tokenised array of little-endian
// uint16 or uint32. Memory-mapped; every token is checked against the vocabulary once, when it is opened.
//
// The last 2 % (at most 1 M tokens, at least one sequence) are held out and never among the training
// sequences. Sequence i starts at token i · context and takes context + 1 tokens, so neighbours share one.
#ifndef ISTHMUS_DAEMON_TRAINING_TOKEN_FILE_H_
#define ISTHMUS_DAEMON_TRAINING_TOKEN_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "daemon/training/training_data.h"

namespace isthmus {

enum class TokenForm : uint8_t { kBytes, kUint16, kUint32 };

// "bytes", "uint16", "uint32". INVALID_ARGUMENT for anything else.
absl::StatusOr<TokenForm> ParseTokenForm(absl::string_view text);

struct TokenFileOptions {
  TokenForm form = TokenForm::kBytes;
  int64_t vocabulary = 256;
  int64_t context = 128;
  // Share of the file that is held out, at its end, and the most tokens that may be.
  double held_out_fraction = 0.02;
  int64_t held_out_most = 1000000;
};

class TokenFile : public TrainingData {
 public:
  // Reads the whole file once (digest and check of tokens). NOT_FOUND or PERMISSION_DENIED: cannot be opened;
  // INVALID_ARGUMENT, always naming the file: empty, not a regular file, a size that is no whole number of
  // tokens, shorter than one training and one held-out sequence, a token beyond the vocabulary (with its
  // offset in tokens), impossible options; INTERNAL: cannot be read.
  static absl::StatusOr<std::unique_ptr<TokenFile>> Open(const std::string& path,
                                                         const TokenFileOptions& options);
  ~TokenFile() override;
  TokenFile(const TokenFile&) = delete;
  TokenFile& operator=(const TokenFile&) = delete;

  int64_t training_sequences() const override { return training_sequences_; }
  Digest digest() const override { return digest_; }
  // Also FAILED_PRECONDITION when the file has shrunk (touching its pages would end the process).
  absl::StatusOr<Batch> TrainingBatch(absl::Span<const int64_t> sequences) const override;
  // Batches of at most 32 sequences.
  std::vector<Batch> HeldOutBatches(bool whole) const override;
  // Looks at size and time first; only when these differ, at the bytes.
  absl::Status CheckUnchanged() const override;

  int64_t tokens() const { return tokens_; }
  int64_t held_out_sequences() const { return held_out_sequences_; }

 private:
  TokenFile(std::string path, const TokenFileOptions& options) : path_(std::move(path)), options_(options) {}
  absl::Status Map();
  absl::Status CheckTokens() const;
  absl::Status Divide();
  int32_t TokenAt(int64_t index) const;
  // Appends `context` + 1 tokens from `start`.
  void AppendRow(int64_t start, std::vector<int32_t>* out) const;
  bool IsStillWhole() const;

  const std::string path_;
  const TokenFileOptions options_;
  int file_ = -1;
  const char* data_ = nullptr;
  int64_t size_bytes_ = 0;
  int64_t changed_seconds_ = 0, changed_nanoseconds_ = 0;  // the file's modification time at opening
  int64_t tokens_ = 0, training_sequences_ = 0, held_out_start_ = 0, held_out_sequences_ = 0;
  Digest digest_;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_TRAINING_TOKEN_FILE_H_
