// Adapters: files with some of a model's tensors, over weights that models share.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "aoti/model.h"
#include "aoti/tensor_view.h"
#include "runtime/core/weights.h"
#include "runtime/tests/check.h"
#include "runtime/tests/fake_program.h"

namespace aoti::testing {
namespace {

using Floats = std::vector<float>;
using internal::Weights;

constexpr std::int64_t kShape[] = {2};
constexpr WeightSpec kWeights[] = {{"bias", DType::kFloat32, kShape},
                                   {"table", DType::kFloat32, kShape}};

// The adder with one more weight, which its code does not read.
const ProgramSpec& Spec() {
  static const ProgramSpec spec = [] {
    ProgramSpec adder = AdderSpec();
    adder.weights = kWeights;
    adder.digest = "d1";
    return adder;
  }();
  return spec;
}

// A file of tensors of two floats; `program` is in its metadata.
std::string File(const std::string& name,
                 const std::vector<std::pair<std::string, Floats>>& tensors,
                 const std::string& program = "") {
  std::string header = "{";
  std::string data;
  if (!program.empty()) header += R"("__metadata__":{"rules_aoti.program":")" + program + "\"},";
  for (const auto& [tensor, values] : tensors) {
    const std::size_t begin = data.size();
    data.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    header += "\"" + tensor + R"(":{"dtype":"F32","shape":[)" + std::to_string(values.size()) +
              R"(],"data_offsets":[)" + std::to_string(begin) + "," + std::to_string(data.size()) +
              "]},";
  }
  if (header.ends_with(',')) header.pop_back();
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const char* directory = std::getenv("TEST_TMPDIR");
  std::string path =
      std::filesystem::path(directory == nullptr ? "/tmp" : directory) / (name + ".safetensors");
  std::uint64_t length = header.size();
  std::ofstream file(path, std::ios::binary);
  for (int i = 0; i < 8; ++i) file.put(static_cast<char>(length >> (8 * i) & 0xff));
  file << header << data;
  CHECK_TRUE(file.good());
  return path;
}

// The result for an input of zeros: the bias.
Floats BiasOf(const Model& model) {
  const Floats x = {0, 0};
  const TensorRef<const float, 2> input = {x.data(), {1, 2}};
  const std::vector<TensorView> views = {input.view()};
  const auto out = model.Run(views);
  if (!out.ok()) return {};
  const auto* data = static_cast<const float*>((*out)[0].data());
  return {data, data + 2};
}

// How many mappings of the file this process has.
int Mappings(const std::string& path) {
  std::ifstream maps("/proc/self/maps");
  const std::string name = std::filesystem::canonical(path);
  int count = 0;
  for (std::string line; std::getline(maps, line);) count += line.ends_with(name) ? 1 : 0;
  return count;
}

std::string Base() { return File("base", {{"bias", {1, 2}}, {"table", {3, 4}}}); }

std::string MessageOf(const std::string& adapter) {
  const auto model = Model::Load(Spec(), {.weights_path = Base(), .adapter_path = adapter});
  if (model.ok()) return "no error";
  return std::string(to_string(model.error().code())) + ": " + model.error().message();
}

TEST(ModelsWithAdaptersShareTheOtherTensors) {
  const std::string base = Base();
  const std::string first = File("first", {{"bias", {5, 6}}});
  const std::string second = File("second", {{"bias", {7, 8}}});
  const auto plain = Model::Load(Spec(), {.weights_path = base});
  const auto a = Model::Load(Spec(), {.weights_path = base, .adapter_path = first});
  const auto b = Model::Load(Spec(), {.weights_path = base, .adapter_path = second});
  REQUIRE_OK(plain);
  REQUIRE_OK(a);
  REQUIRE_OK(b);
  CHECK_TRUE(BiasOf(*plain) == Floats({1, 2}));
  CHECK_TRUE(BiasOf(*a) == Floats({5, 6}));
  CHECK_TRUE(BiasOf(*b) == Floats({7, 8}));
  CHECK_EQ(Mappings(base), 1);

  auto one = Weights::Load(Spec(), base, /*copy=*/false);
  const auto other = Weights::Load(Spec(), base, /*copy=*/false);
  REQUIRE_OK(one);
  REQUIRE_OK(other);
  CHECK_TRUE(!one->Adapt(Spec(), first, /*copy=*/false));
  CHECK_TRUE(one->data(0) != other->data(0));
  CHECK_TRUE(one->data(1) == other->data(1));
  CHECK_TRUE(one->Contains(one->data(0)) && one->Contains(one->data(1)));
}

TEST(AdaptersAreSwapped) {
  const std::string base = Base();
  const std::string first = File("swapped", {{"bias", {5, 6}}});
  const auto model = Model::Load(Spec(), {.weights_path = base, .adapter_path = first});
  REQUIRE_OK(model);
  CHECK_EQ(Mappings(first), 1);
  const std::string second = File("later", {{"bias", {7, 8}}});
  CHECK_TRUE(!model->SwapAdapter(second, base));
  CHECK_TRUE(BiasOf(*model) == Floats({7, 8}));
  CHECK_EQ(Mappings(first), 0);
  CHECK_EQ(Mappings(base), 1);
  // After an error, the model has what it had.
  CHECK_TRUE(model->SwapAdapter("/no/file", base).has_value());
  CHECK_TRUE(BiasOf(*model) == Floats({7, 8}));
  // Without an adapter, the weights are the file's.
  CHECK_TRUE(!model->SwapWeights(base));
  CHECK_TRUE(BiasOf(*model) == Floats({1, 2}));
  // A copy depends on neither file.
  CHECK_TRUE(!model->SwapAdapter(second, base, true));
  CHECK_EQ(Mappings(base) + Mappings(second), 0);
  CHECK_TRUE(BiasOf(*model) == Floats({7, 8}));
}

TEST(WrongAdapters) {
  const std::string extra = File("extra", {{"bias", {5, 6}}, {"lora_a", {1, 2}}});
  CHECK_EQ(MessageOf(extra), "WeightsMismatch: adder: adapter " + extra +
                                 " does not fit //tests:adder; 1 tensors differ:\n"
                                 "  extra: \"lora_a\", float32[2]");
  const std::string wrong = File("wrong", {{"bias", {5, 6, 7}}});
  CHECK_EQ(MessageOf(wrong), "WeightsMismatch: adder: adapter " + wrong +
                                 " does not fit //tests:adder; 1 tensors differ:\n"
                                 "  wrong: \"bias\" is float32[3], must be float32[2]");
  const std::string empty = File("empty", {});
  CHECK_EQ(MessageOf(empty), "WeightsMismatch: adder: adapter " + empty +
                                 " has no tensors, must have some of those of //tests:adder");
  CHECK_EQ(MessageOf("/no/file"),
           "WeightsNotFound: adder: adapter /no/file: No such file or directory");
}

TEST(FilesThatNameTheirProgram) {
  CHECK_EQ(MessageOf(File("same", {{"bias", {5, 6}}}, "d1")), "no error");
  const std::string other = File("other", {{"bias", {5, 6}}}, "d2");
  CHECK_EQ(MessageOf(other),
           "WeightsMismatch: adder: adapter " + other +
               ": its metadata says that it was made for the program d2, but this program of "
               "//tests:adder is d1. Make the file with this program, or leave "
               "\"rules_aoti.program\" out of its metadata if its tensors mean the same.");
  const std::string whole = File("whole", {{"bias", {1, 2}}, {"table", {3, 4}}}, "d2");
  CHECK_TRUE(!Model::Load(Spec(), {.weights_path = whole}).ok());
  const auto model = Model::Load(Spec(), {.weights_path = Base()});
  REQUIRE_OK(model);
  const std::optional<Error> error = model->SwapWeights(whole);
  CHECK_TRUE(error.has_value() && error->code() == ErrorCode::kWeightsMismatch);
  CHECK_TRUE(BiasOf(*model) == Floats({1, 2}));
}

}  // namespace
}  // namespace aoti::testing

int main() { return aoti::testing::RunAllTests(); }
