// Classes that tests have as members of models.

#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "aoti/custom_class.h"

namespace {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

Tensor Like(const Tensor& x, ScalarType dtype) {
  return torch::stable::new_empty(x, x.sizes(), dtype);
}

// A constructor and methods with arguments of every kind.
class Everything {
 public:
  Everything(const Tensor& weights, int64_t count, double factor, bool negative, std::string name,
             std::vector<Tensor> more, std::vector<int64_t> ints, std::vector<double> floats,
             std::vector<std::string> words)
      : weights_(torch::stable::clone(torch::stable::contiguous(weights))),
        more_(std::move(more)),
        ints_(std::move(ints)),
        words_(std::move(words)) {
    sum_ = static_cast<double>(count) + factor + static_cast<double>(name.size());
    for (const double value : floats) sum_ += value;
    if (negative) sum_ = -sum_;
  }

  // x plus the sum of all fields, and each weight plus the size of a list.
  std::tuple<Tensor, Tensor> Add(const Tensor& x, int64_t times, double plus, bool twice,
                                 const std::string& word, std::optional<Tensor> bias) const {
    const Tensor in = torch::stable::contiguous(x);
    Tensor out = Like(in, ScalarType::Float);
    for (int64_t i = 0; i < in.numel(); ++i) {
      double value = static_cast<double>(in.const_data_ptr<float>()[i]) + sum_ + plus;
      for (const Tensor& tensor : more_) value += tensor.const_data_ptr<int64_t>()[0];
      for (const int64_t number : ints_) value += static_cast<double>(number);
      for (const std::string& known : words_) value += known == word ? 1000 : 0;
      if (bias) value += static_cast<double>(bias->const_data_ptr<float>()[0]);
      value *= static_cast<double>(times) * (twice ? 2 : 1);
      out.mutable_data_ptr<float>()[i] = static_cast<float>(value);
    }
    return {out, weights_};
  }

  int64_t Count() const { return static_cast<int64_t>(words_.size()); }

 private:
  Tensor weights_;
  std::vector<Tensor> more_;
  std::vector<int64_t> ints_;
  std::vector<std::string> words_;
  double sum_;
};

// How many of them there are; a machine may be without what it needs.
class Counted {
 public:
  explicit Counted(int64_t first) : first_(first) {
    STD_TORCH_CHECK(std::getenv("AOTI_TEST_ABSENT") == nullptr, "the device ", first,
                    " is not there");
    ++alive;
  }
  ~Counted() { --alive; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

  // Only tests at run time ask for the number: PyTorch copies objects when it exports.
  Tensor Alive(const Tensor& x) const {
    const int64_t counted = std::getenv("AOTI_TEST_COUNT") == nullptr ? 0 : alive.load();
    Tensor out = Like(x, ScalarType::Long);
    for (int64_t i = 0; i < out.numel(); ++i) {
      out.mutable_data_ptr<int64_t>()[i] = first_ + counted;
    }
    return out;
  }

 private:
  static inline std::atomic<int64_t> alive = 0;
  int64_t first_;
};

}  // namespace

AOTI_CUSTOM_CLASS(tested_classes, Everything) {
  c.init<Tensor, int64_t, double, bool, std::string, std::vector<Tensor>, std::vector<int64_t>,
         std::vector<double>, std::vector<std::string>>("weights", "count", "factor", "negative",
                                                        "name", "more", "ints", "floats", "words");
  c.def<&Everything::Add>("add", "x", "times", "plus", "twice", "word", "bias");
  c.def<&Everything::Count>("count");
}

AOTI_CUSTOM_CLASS(tested_classes, Counted) {
  c.init<int64_t>("first");
  c.def<&Counted::Alive>("alive", "x");
}
