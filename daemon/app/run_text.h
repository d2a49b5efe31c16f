// The run file's text: protobuf text format in, a message, every mistake and the place of every field out.
//
// Knows the form only; what makes sense is run_checks' business.
#ifndef ISTHMUS_DAEMON_APP_RUN_TEXT_H_
#define ISTHMUS_DAEMON_APP_RUN_TEXT_H_

#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "google/protobuf/text_format.h"
#include "protos/run.pb.h"

namespace isthmus {

// Something to say about a run file. Lines and columns count from 1.
struct RunFinding {
  int line = 1;
  int column = 1;
  bool is_warning = false;
  std::string message;
};

// Where things stand in the text, and what could not be read.
class RunLocations {
 public:
  struct Place {
    int line = 1;
    int column = 1;
  };

  // Of a field by its dotted path ("model.width"); of the nearest message around it that is written when it
  // is not.
  Place Find(absl::string_view path) const;

  // A field that is written, but whose value could not be read.
  bool IsUnreadable(absl::string_view path) const;

 private:
  friend bool ParseRunText(absl::string_view, RunFile*, RunLocations*, std::vector<RunFinding>*);

  google::protobuf::TextFormat::ParseInfoTree tree_;
  std::set<std::string> unreadable_;  // names without their path
};

// Reads `text` into `run` and appends every mistake of form to `findings`: unknown field or word (with a
// guess at what was meant), a value of the wrong kind, a field given twice, a brace missing. False when the
// text could not be read to its end. `run` then holds what could be read.
bool ParseRunText(absl::string_view text, RunFile* run, RunLocations* locations,
                  std::vector<RunFinding>* findings);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_RUN_TEXT_H_
