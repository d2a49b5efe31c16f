// What every process of a simulated run encoded, kept by frame: the memory of the invariant checks.
#ifndef ISTHMUS_DAEMON_APP_SIM_RECORDING_OPS_H_
#define ISTHMUS_DAEMON_APP_SIM_RECORDING_OPS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "compression/codec.h"
#include "gpu/device_ops.h"

namespace isthmus {

// Not thread-safe. Must outlive the ops it makes.
class FrameRecorder {
 public:
  struct Frame {
    int64_t process = 0;  // the newest that made these bytes
    int64_t bytes = 0;
    DecodedFrame decoded;
  };

  // The CPU reference, noting what `process` of `site` encodes.
  std::unique_ptr<DeviceOps> MakeOps(const std::string& site, int64_t process);
  // The same around `ops`.
  std::unique_ptr<DeviceOps> Wrap(std::unique_ptr<DeviceOps> ops, const std::string& site, int64_t process);

  // By site and frame digest (16 bytes); null when nobody there made it.
  const Frame* Find(const std::string& site, const std::string& digest) const;

  struct Sent {
    int64_t frames = 0, bytes = 0, largest = 0;
  };
  // All that a site encoded.
  Sent SentBy(const std::string& site) const;

  void Note(const std::string& site, int64_t process, const Codec& codec, const Layout& layout,
            const std::string& bytes);

 private:
  std::map<std::pair<std::string, std::string>, Frame> frames_;
  std::map<std::string, Sent> sent_;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_SIM_RECORDING_OPS_H_
