#include "daemon/training/learning_cells.h"

#include <utility>

namespace isthmus {
namespace {

constexpr int64_t kSites = 3, kSequences = 4, kContext = 128;

// 40 rounds of 15 steps; more rounds are of 5.
LearningCase Base(int64_t rounds, LearningForm form) {
  LearningCase c;
  c.form = form;
  c.sites = kSites;
  c.sequences = kSequences;
  c.inner_steps = rounds == 40 ? 15 : 5;
  c.tokens = rounds * c.inner_steps * kSites * kSequences * kContext;
  return c;
}

LearningCase Sparse(int64_t rounds, int64_t k, double alpha) {
  LearningCase c = Base(rounds, LearningForm::kSparse);
  c.kept_per_block = k;
  c.outer_rate = alpha;
  return c;
}

// The last round is as the others; what was not sent by then is lost.
LearningCase NotFlushed(LearningCase c) {
  c.last_codec.clear();
  return c;
}

// Builds the list a group at a time.
class CellList {
 public:
  void Group(std::string name) { group_ = std::move(name); }
  // Adds the case as it is; what is returned can be changed until the next call.
  LearningCase& Add(std::string name, LearningCase c) {
    cells_.push_back({group_, std::move(name), std::move(c)});
    return cells_.back().c;
  }
  std::vector<LearningCell> Take() { return std::move(cells_); }

 private:
  std::string group_;
  std::vector<LearningCell> cells_;
};

void AddForms(CellList* list) {
  list->Group("forms");
  list->Add("40 rounds: dense average", Base(40, LearningForm::kDense));
  list->Add("40 rounds: synchronous", Base(40, LearningForm::kSynchronous));
  list->Add("40 rounds: dense Nesterov 0.5/0.5", Base(40, LearningForm::kDenseNesterov));
  list->Add("40 rounds: carried, k 512, 1 bit", Sparse(40, 512, 1));
  list->Add("120 rounds: dense average", Base(120, LearningForm::kDense));
  list->Add("120 rounds: carried, k 64, 1 bit, a 1.5", Sparse(120, 64, 1.5));
}

void AddFeedback(CellList* list) {
  const auto separate = [list](const char* name, LearningCase c, double beta) {
    LearningCase& added = list->Add(name, std::move(c));
    added.feedback = LearningFeedback::kSeparate;
    added.carry_decay = beta;
  };
  list->Group("feedback");
  list->Add("k 512: carried", Sparse(40, 512, 1));
  list->Add("k 512: carried, b 0.95", Sparse(40, 512, 1)).carry_decay = 0.95;
  separate("k 512: separate, b 0.95", Sparse(40, 512, 1), 0.95);
  separate("k 512: separate, b 1", Sparse(40, 512, 1), 1);
  separate("k 512: separate, b 0.95, not flushed", NotFlushed(Sparse(40, 512, 1)), 0.95);
  separate("k 512: separate, b 1, not flushed", NotFlushed(Sparse(40, 512, 1)), 1);
  list->Group("feedback-120");
  list->Add("k 64: carried, a 1.5", Sparse(120, 64, 1.5));
  list->Add("k 64: carried, b 0.95, a 1.5", Sparse(120, 64, 1.5)).carry_decay = 0.95;
  list->Add("k 64: carried, a 1", Sparse(120, 64, 1));
  list->Add("k 64: carried, b 0.95, a 1", Sparse(120, 64, 1)).carry_decay = 0.95;
  separate("k 64: separate, b 0.95, a 1", Sparse(120, 64, 1), 0.95);
  separate("k 64: separate, b 0.95, a 1.5", Sparse(120, 64, 1.5), 0.95);
  separate("k 64: separate, b 1, a 1.5", Sparse(120, 64, 1.5), 1);
  separate("k 64: separate, b 0.95, a 1, not flushed", NotFlushed(Sparse(120, 64, 1)), 0.95);
  separate("k 64: separate, b 0.95, a 1.5, not flushed", NotFlushed(Sparse(120, 64, 1.5)), 0.95);
}

void AddBits(CellList* list) {
  const auto bits = [list](const char* name, LearningCase c, int64_t value_bits) {
    list->Add(name, std::move(c)).value_bits = value_bits;
  };
  const auto automatic = [list](const char* name, LearningCase c) {
    LearningCase& added = list->Add(name, std::move(c));
    added.codec = "topk(k=" + std::to_string(added.kept_per_block) + ",block=4096)|levels(bits=auto)";
  };
  list->Group("bits");
  bits("1 bit, k 512", Sparse(40, 512, 1), 1);
  bits("2 bits, k 408", Sparse(40, 408, 1), 2);
  bits("3 bits, k 341", Sparse(40, 341, 1), 3);
  automatic("auto bits, k 512 in bytes", Sparse(40, 512, 1));
  list->Group("bits-120");
  bits("1 bit, k 64", Sparse(120, 64, 1.5), 1);
  bits("2 bits, k 55", Sparse(120, 55, 1.5), 2);
  bits("3 bits, k 47", Sparse(120, 47, 1.5), 3);
  automatic("auto bits, k 64 in bytes", Sparse(120, 64, 1.5));
}

void AddInterval(CellList* list) {
  const auto every = [list](const char* name, int64_t steps, int64_t k, double alpha) {
    list->Add(name, Sparse(40, k, alpha)).inner_steps = steps;  // the tokens stay
  };
  list->Group("interval");
  every("H 15, k 512, 40 rounds", 15, 512, 1);
  every("H 3, k 65, 200 rounds", 3, 65, 1);
  every("H 3, k 65, a 1.6875", 3, 65, 1.6875);
  every("H 5, k 121, 120 rounds", 5, 121, 1);
  every("H 5, k 121, a 1.5", 5, 121, 1.5);
  every("H 30, k 1556, 20 rounds", 30, 1556, 1);
}

void AddDensity(CellList* list) {
  list->Group("density");
  for (int64_t k : {512, 128, 256, 1024, 4096}) {
    list->Add(k == 4096 ? "every entry" : "k " + std::to_string(k), Sparse(40, k, 1));
  }
}

void AddOuter(CellList* list) {
  const auto momentum = [list](const char* name, LearningCase c) {
    list->Add(name, std::move(c)).outer_momentum = 0.5;
  };
  list->Group("outer-40");
  list->Add("k 512, a 1", Sparse(40, 512, 1));
  list->Add("k 512, a 1.5", Sparse(40, 512, 1.5));
  list->Add("k 512, a 2", Sparse(40, 512, 2));
  momentum("k 512, a 0.5, m 0.5", Sparse(40, 512, 0.5));
  momentum("k 512, a 1, m 0.5", Sparse(40, 512, 1));
  list->Add("k 256, a 1", Sparse(40, 256, 1));
  list->Add("k 256, a 1.5", Sparse(40, 256, 1.5));
  list->Add("k 64, a 1", Sparse(40, 64, 1));
  list->Add("k 64, a 1.5", Sparse(40, 64, 1.5));
  list->Add("k 64, a 2", Sparse(40, 64, 2));
  list->Group("outer-120");
  list->Add("k 64, a 1", Sparse(120, 64, 1));
  list->Add("k 64, a 1.5", Sparse(120, 64, 1.5));
  list->Add("k 64, a 2", Sparse(120, 64, 2));
  momentum("k 64, a 1, m 0.5", Sparse(120, 64, 1));
  list->Add("k 128, a 1.5", Sparse(120, 128, 1.5));
  list->Add("k 256, a 1", Sparse(120, 256, 1));
  list->Add("k 256, a 1.5", Sparse(120, 256, 1.5));
  list->Add("k 256, a 2", Sparse(120, 256, 2));
  list->Add("k 512, a 1.5", Sparse(120, 512, 1.5));
  list->Group("outer-400");
  list->Add("k 64, a 1", Sparse(400, 64, 1));
  list->Add("k 64, a 1.5", Sparse(400, 64, 1.5));
  list->Add("k 64, a 2", Sparse(400, 64, 2));
  momentum("k 64, a 1, m 0.5", Sparse(400, 64, 1));
  list->Add("dense average", Base(400, LearningForm::kDense));
  list->Group("outer-400x15");
  for (double alpha : {1, 2}) {
    LearningCase& added = list->Add(alpha == 1 ? "k 64, a 1" : "k 64, a 2", Sparse(400, 64, alpha));
    added.tokens *= 3;
    added.inner_steps = 15;
  }
}

void AddSums(CellList* list) {
  list->Group("averaging");
  list->Add("k 512: peers", Sparse(40, 512, 1));
  list->Add("k 512: contributors", Sparse(40, 512, 1)).averaging = Averaging::kContributors;
  list->Group("averaging-120");
  list->Add("k 64: peers, a 1.5", Sparse(120, 64, 1.5));
  list->Add("k 64: peers, a 1", Sparse(120, 64, 1));
  list->Add("k 64: contributors, a 1", Sparse(120, 64, 1)).averaging = Averaging::kContributors;
  list->Add("k 64: contributors, a 0.5", Sparse(120, 64, 0.5)).averaging = Averaging::kContributors;

  list->Group("weights");
  LearningCase slow = Sparse(40, 512, 1);
  slow.slowness = {1, 1, 3};
  slow.tokens = 40 * (15 + 15 + 5) * kSequences * kContext;
  list->Add("tokens per step (15, 15, 5 steps)", slow);
  list->Add("tokens", slow).weights = LearningWeights::kTokens;
  list->Add("equal", slow).weights = LearningWeights::kEqual;
}

void AddOverlap(CellList* list) {
  list->Group("overlap");
  list->Add("k 512: applied at once", Sparse(40, 512, 1));
  list->Add("k 512: 5 of 15 steps late", Sparse(40, 512, 1)).outcome_delay_steps = 5;
  list->Add("k 512: 14 of 15 steps late", Sparse(40, 512, 1)).outcome_delay_steps = 14;
  list->Group("overlap-120");
  list->Add("k 64: applied at once, a 1.5", Sparse(120, 64, 1.5));
  list->Add("k 64: 4 of 5 steps late, a 1.5", Sparse(120, 64, 1.5)).outcome_delay_steps = 4;
}

void AddShare(CellList* list) {
  list->Group("share");
  list->Add("k 512: uniform", Sparse(40, 512, 1));
  list->Add("k 512: energy", Sparse(40, 512, 1)).codec = "topk(k=512,block=4096,share=energy)|levels(bits=1)";
  list->Group("share-120");
  list->Add("k 64: uniform, a 1.5", Sparse(120, 64, 1.5));
  list->Add("k 64: energy, a 1.5", Sparse(120, 64, 1.5)).codec =
      "topk(k=64,block=4096,share=energy)|levels(bits=1)";
}

void AddLast(CellList* list) {
  const auto last = [list](const char* name, LearningCase c, const char* codec) {
    list->Add(name, std::move(c)).last_codec = codec;
  };
  list->Group("last");
  list->Add("k 512: dense 24 bit", Sparse(40, 512, 1));
  last("k 512: dense 8 bit", Sparse(40, 512, 1), "dense(bits=8,group=64)");
  last("k 512: as the others", Sparse(40, 512, 1), "");
  list->Group("last-120");
  list->Add("k 64: dense 24 bit, a 1.5", Sparse(120, 64, 1.5));
  last("k 64: dense 8 bit, a 1.5", Sparse(120, 64, 1.5), "dense(bits=8,group=64)");
  last("k 64: as the others, a 1.5", Sparse(120, 64, 1.5), "");
}

void AddDown(CellList* list) {
  const auto down = [list](const char* name, LearningCase c, int64_t k, int64_t bits) {
    LearningCase& added = list->Add(name, std::move(c));
    added.down_kept_per_block = k;
    added.down_value_bits = bits;
  };
  list->Group("down");
  list->Add("k 512: exact", Sparse(40, 512, 1));
  down("k 512: 512 again, 2 bits", Sparse(40, 512, 1), 512, 2);
  down("k 512: 1024 again, 2 bits", Sparse(40, 512, 1), 1024, 2);
  list->Group("down-120");
  list->Add("k 64: exact, a 1.5", Sparse(120, 64, 1.5));
  down("k 64: 64 again, 2 bits, a 1.5", Sparse(120, 64, 1.5), 64, 2);
  down("k 64: 128 again, 2 bits, a 1.5", Sparse(120, 64, 1.5), 128, 2);
}

}  // namespace

ModelShape LearningMatrixShape() {
  ModelShape shape;
  shape.width = 64;
  shape.layers = 3;
  shape.heads = shape.kv_heads = 2;
  shape.feed_forward = 176;
  shape.context = kContext;
  return shape;
}

std::vector<LearningGroup> LearningGroups() {
  return {
      {"forms", "what sparse exchange costs beside dense and synchronous training"},
      {"feedback", "what was not sent: carried by the parameters, or in a residual of its own (decay b)"},
      {"feedback-120", "the same over 120 rounds of 5 steps"},
      {"bits", "value bits at equal bytes up"},
      {"bits-120", "the same over 120 rounds of 5 steps"},
      {"interval", "exchanging often or densely, at equal bytes up in an inner step"},
      {"density", "kept values of a block of 4096, one bit each"},
      {"outer-40", "outer rate a and momentum m in 40 rounds of 15 steps"},
      {"outer-120", "the same over 120 rounds of 5 steps"},
      {"outer-400", "the same over 400 rounds of 5 steps"},
      {"outer-400x15", "the same over 400 rounds of 15 steps"},
      {"averaging", "by the round's whole weight, or by those that sent a position"},
      {"averaging-120", "the same over 120 rounds of 5 steps"},
      {"weights", "what a contribution's weight measures, one site at a third of the speed"},
      {"overlap", "training on while the frames travel"},
      {"overlap-120", "the same over 120 rounds of 5 steps"},
      {"share", "k the same in every tensor, or by their energy, at equal bytes"},
      {"share-120", "the same over 120 rounds of 5 steps"},
      {"last", "how the last round flushes what is carried"},
      {"last-120", "the same over 120 rounds of 5 steps"},
      {"down", "the update exact, or compressed again with a residual at the hub"},
      {"down-120", "the same over 120 rounds of 5 steps"},
  };
}

std::vector<LearningCell> LearningCells() {
  CellList list;
  AddForms(&list);
  AddFeedback(&list);
  AddBits(&list);
  AddInterval(&list);
  AddDensity(&list);
  AddOuter(&list);
  AddSums(&list);
  AddOverlap(&list);
  AddShare(&list);
  AddLast(&list);
  AddDown(&list);
  return list.Take();
}

}  // namespace isthmus
