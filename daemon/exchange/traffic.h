// Payload bytes by class of traffic and direction.
//
// Counted where a message or a piece is handed to the transport or taken from it, repeats after broken
// connections included; what the transport adds around them is not in. Not thread-safe.
#ifndef ISTHMUS_DAEMON_EXCHANGE_TRAFFIC_H_
#define ISTHMUS_DAEMON_EXCHANGE_TRAFFIC_H_

#include <array>
#include <cstdint>

#include "protos/records.pb.h"
#include "protos/service.pb.h"

namespace isthmus {

// The class a blob travels in.
inline TrafficBytes::Kind TrafficOf(BlobKind kind) {
  switch (kind) {
    case UPDATE:
      return TrafficBytes::UPDATE;
    case SNAPSHOT:
    case PACKED_SNAPSHOT:
      return TrafficBytes::SNAPSHOT;
    default:
      return TrafficBytes::CONTROL;
  }
}

// Plain value. Up is towards the coordinator, whoever counts.
class TrafficTally {
 public:
  void Up(TrafficBytes::Kind kind, int64_t bytes) { up_[kind] += bytes; }
  void Down(TrafficBytes::Kind kind, int64_t bytes) { down_[kind] += bytes; }
  int64_t up(TrafficBytes::Kind kind) const { return up_[kind]; }
  int64_t down(TrafficBytes::Kind kind) const { return down_[kind]; }
  int64_t all_up() const { return Sum(up_); }
  int64_t all_down() const { return Sum(down_); }

  void Add(const TrafficBytes& row) {
    if (row.kind() < 0 || row.kind() >= TrafficBytes::Kind_ARRAYSIZE) return;
    Up(row.kind(), row.bytes_up());
    Down(row.kind(), row.bytes_down());
  }
  TrafficTally& operator+=(const TrafficTally& other) { return Combine(other, 1); }
  TrafficTally& operator-=(const TrafficTally& other) { return Combine(other, -1); }

  // A row for each class, or for each that moved.
  template <typename Rows>
  void AppendTo(bool only_moved, Rows* rows) const {
    for (int kind = TrafficBytes::CONTROL; kind < TrafficBytes::Kind_ARRAYSIZE; ++kind) {
      if (only_moved && up_[kind] == 0 && down_[kind] == 0) continue;
      TrafficBytes* row = rows->Add();
      row->set_kind(static_cast<TrafficBytes::Kind>(kind));
      row->set_bytes_up(up_[kind]);
      row->set_bytes_down(down_[kind]);
    }
  }

 private:
  using Counts = std::array<int64_t, TrafficBytes::Kind_ARRAYSIZE>;

  static int64_t Sum(const Counts& counts) {
    int64_t sum = 0;
    for (int64_t bytes : counts) sum += bytes;
    return sum;
  }
  TrafficTally& Combine(const TrafficTally& other, int64_t sign) {
    for (size_t i = 0; i < up_.size(); ++i) {
      up_[i] += sign * other.up_[i];
      down_[i] += sign * other.down_[i];
    }
    return *this;
  }

  Counts up_{}, down_{};
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_EXCHANGE_TRAFFIC_H_
