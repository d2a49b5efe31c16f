// `isthmus worker URL`: its flags. What it does once they are parsed is wired elsewhere.
#ifndef ISTHMUS_DAEMON_APP_WORKER_COMMAND_H_
#define ISTHMUS_DAEMON_APP_WORKER_COMMAND_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/time/time.h"
#include "daemon/app/command_line.h"
#include "daemon/app/log_options.h"

namespace isthmus {

struct WorkerOptions {
  std::string url;
  std::string data;                                  // the site's text or tokens
  std::string site;                                  // empty: the host's name
  int64_t max_tokens_per_second = 0;                 // 0: as fast as it goes
  int64_t threads = 1;                               // of the matrix library
  int64_t upload_bytes_per_second = 0;               // 0: as fast as it goes
  absl::Duration give_up_after = absl::Minutes(10);  // without a coordinator
  bool is_insecure = false;
  int64_t flip_anchor_bit_after_round = 0;  // a planted defect, for tests of the product; 0: none
  LogOptions log;
};

// Parsed options go to `run`, whose value is the exit code.
void AddWorkerCommand(CommandLine* line, std::function<int(const WorkerOptions&)> run);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_WORKER_COMMAND_H_
