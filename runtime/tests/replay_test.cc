#include "runtime/testing/replay.h"

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/core/mapped_file.h"
#include "runtime/core/safetensors.h"
#include "runtime/testing/safetensors_writer.h"
#include "runtime/tests/check.h"
#include "runtime/tests/fake_program.h"

namespace aoti::testing {
namespace {

std::string TempPath(const std::string& name) {
  const char* directory = std::getenv("TEST_TMPDIR");
  return std::filesystem::path(directory == nullptr ? "/tmp" : directory) / name;
}

void AddFloats(SafetensorsWriter& writer, const std::string& name, std::vector<float> values) {
  writer.Add(name, DType::kFloat32, {static_cast<std::int64_t>(values.size())}, values.data());
}

int Replay(const ProgramSpec& spec, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "replay");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  return ReplayMain(spec, static_cast<int>(argv.size()), argv.data());
}

TEST(RunsCallsInOrder) {
  SafetensorsWriter weights;
  AddFloats(weights, "count", {5});
  AddFloats(weights, "total", {50});
  SafetensorsWriter cases;
  for (const char* name : {"0/cache", "2/cache", "10/cache"}) AddFloats(cases, name, {1});
  CHECK_TRUE(weights.Write(TempPath("w.safetensors")) && cases.Write(TempPath("in.safetensors")));
  CHECK_EQ(Replay(CounterSpec(),
                  {"--weights=" + TempPath("w.safetensors"), "--in=" + TempPath("in.safetensors"),
                   "--out=" + TempPath("out.safetensors")}),
           0);

  const auto file = internal::MappedFile::Open(TempPath("out.safetensors"));
  REQUIRE_OK(file);
  const auto tensors = internal::ParseSafetensors((*file)->bytes(), "out");
  REQUIRE_OK(tensors);
  std::string text;
  for (const internal::StoredTensor& tensor : *tensors) {
    text += tensor.name + "=" +
            std::to_string(static_cast<int>(*reinterpret_cast<const float*>(tensor.bytes.data()))) +
            " ";
  }
  CHECK_EQ(text,
           "0/cache=101 0/count=6 0/total=60 10/cache=101 10/count=8 10/total=80 "
           "2/cache=101 2/count=7 2/total=70 ");
}

TEST(DistinguishesUsageErrorsFromModelErrors) {
  const std::string in = "--in=" + TempPath("bad.safetensors");
  const std::string out = "--out=" + TempPath("bad_out.safetensors");
  CHECK_EQ(Replay(CounterSpec(), {}), 2);
  CHECK_EQ(Replay(CounterSpec(), {in, out, "--speed=1"}), 2);
  CHECK_EQ(Replay(CounterSpec(), {"--in=/does/not/exist", out}), 2);

  SafetensorsWriter unknown;
  AddFloats(unknown, "0/unknown", {1});
  CHECK_TRUE(unknown.Write(TempPath("bad.safetensors")));
  CHECK_EQ(Replay(CounterSpec(), {in, out}), 2);

  SafetensorsWriter wrong;
  AddFloats(wrong, "0/cache", {1, 2});
  CHECK_TRUE(wrong.Write(TempPath("bad.safetensors")));
  SafetensorsWriter weights;
  AddFloats(weights, "count", {5});
  AddFloats(weights, "total", {50});
  CHECK_TRUE(weights.Write(TempPath("w.safetensors")));
  CHECK_EQ(Replay(CounterSpec(), {in, out, "--weights=" + TempPath("w.safetensors")}), 3);
  CHECK_TRUE(!std::filesystem::exists(TempPath("bad_out.safetensors")));
}

}  // namespace
}  // namespace aoti::testing

int main() { return aoti::testing::RunAllTests(); }
