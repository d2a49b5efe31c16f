// Encoded runs in, in order, and a frame out.
//
// What of a block is sent hangs on its tensor's exponent, which only the tensor's last run decides; and
// whether a matrix goes by its rows, on what both forms take. Runs are held until then, as long as they are
// few. Those of a larger tensor go out by the exponent so far. Should that turn out wrong (a block sent that
// is too small beside a later one), or a form be chosen that was not held, the frame must be made anew,
// knowing what was learned. So memory does not grow with the model, and the bytes hang on nothing but the
// values.
#ifndef ISTHMUS_COMPRESSION_SPARSE_MERGER_H_
#define ISTHMUS_COMPRESSION_SPARSE_MERGER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compression/bit_pack.h"
#include "compression/codec_spec.h"
#include "compression/frame_format.h"
#include "compression/layout.h"
#include "compression/sparse_run.h"

namespace isthmus {

// What an attempt learned of a tensor.
struct KnownTensor {
  bool by_rows = false;
  int exponent = 0;
};
// Called with each run that is sent and the exponent it is sent by: with the tensor's in the end.
using AmendRun = std::function<void(const Run&, int exponent)>;
using KnownTensors = std::map<int, KnownTensor>;  // by index

// Not thread-safe.
class RunMerger {
 public:
  // Of each form of a tensor at most about `held_bytes` of runs are held. What is passed must outlive the
  // merger. `amend` may be null.
  RunMerger(const CodecSpec& spec, const Layout& layout, absl::Span<const TensorWork> work,
            int64_t held_bytes, KnownTensors* known, AmendRun amend);

  // Takes the next run in order, which is finite: of a tensor all of its own, then those by rows; of a known
  // one only those of its form. Appends runs no longer needed to *spent. False when the frame must be made
  // anew, with what is then in *known; the merger is of no more use.
  bool Take(std::unique_ptr<Run> run, std::vector<std::unique_ptr<Run>>* spent);
  // After the last run: the frame.
  std::string Finish();

 private:
  using Spent = std::vector<std::unique_ptr<Run>>;
  // One of the two ways of the tensor whose runs are coming in.
  struct Form {
    std::deque<std::unique_ptr<Run>> held;
    int64_t held_bytes = 0;
    bool is_dropped = false;    // too much to hold
    std::vector<double> means;  // of the classes, block after block
    double largest = 0;         // of them
    int64_t counts[256] = {};   // of gap bytes; where there is a choice
    int64_t value_bits = 0;     // and bits of values and levels
  };

  static constexpr int kNotAmended = 1000;
  static constexpr double kLeastAmendedOfNone = 1e300;

  void Count(const Run& run, Form* form) const;
  void Amend(const Run& run, int exponent);
  // Whether what went out for the tensor is what its exponent asks for.
  bool IsRight(int exponent) const;
  bool IsSmallerByRows(int tensor) const;
  // Writes what the oldest held run sends by this exponent.
  void SendOldest(Form* form, int exponent, Spent* spent);
  void SendBlocks(const Run& run, double least);
  bool FinishTensor(int tensor, bool by_rows, int exponent, Spent* spent);
  void PutCodes(const uint64_t* word, int bits);
  void EndPiece();

  const absl::Span<const TensorWork> work_;
  const int64_t most_held_;
  KnownTensors* const known_;
  const AmendRun amend_;
  FrameWriter writer_;
  std::vector<TensorHeader> headers_;
  std::string levels_;         // of the frame so far
  std::string gaps_, values_;  // of the piece so far
  BitWriter bits_;

  Form forms_[2];          // as it is, by rows
  double least_sent_ = 0;  // of the tensor's blocks sent, the least largest mean; 0: none is
  // Of the runs amended: the least exponent, and the least mean that is not 0. Above their range: none is.
  int least_amended_by_ = kNotAmended;
  double least_amended_ = kLeastAmendedOfNone;
};

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_SPARSE_MERGER_H_
