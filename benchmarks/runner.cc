#include "benchmarks/runner.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aoti/model.h"
#include "benchmarks/callers.h"
#include "runtime/core/mapped_file.h"
#include "runtime/core/safetensors.h"

namespace aoti::benchmark {
namespace {

using Clock = std::chrono::steady_clock;

// Text as a JSON string.
std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return quoted + '"';
}

// The value, or an exception with the error's text.
template <typename T>
T ValueOrThrow(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message());
  return std::move(*result);
}

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

std::vector<std::int64_t> StaticSizes(const InputSpec& input) {
  std::vector<std::int64_t> sizes;
  for (const Extent& extent : input.sizes) {
    if (extent.dim >= 0 || extent.compute != nullptr) {
      throw std::runtime_error(std::string("the file has no input \"") + input.name + '"');
    }
    sizes.push_back(extent.offset);
  }
  return sizes;
}

// The inputs of one case, in memory that the model may write to.
class Case {
 public:
  Case(const Model& model, const std::string& path, const InputMemory* on_cuda) : path_(path) {
    const auto file = ValueOrThrow(internal::MappedFile::Open(path));
    auto tensors = ValueOrThrow(internal::ParseSafetensors(file->bytes(), path));
    for (const InputSpec& input : model.inputs()) {
      const auto stored = std::find_if(tensors.begin(), tensors.end(), [&](const auto& tensor) {
        return tensor.name == input.name;
      });
      if (stored != tensors.end()) {
        std::byte* data = Add(input, std::move(stored->sizes));
        std::copy(stored->bytes.begin(), stored->bytes.end(), data);
      } else {
        Add(input, StaticSizes(input));
      }
    }
    if (on_cuda != nullptr) MoveTo(*on_cuda);
  }

  std::span<const TensorView> views() const { return views_; }
  const std::string& path() const { return path_; }

 private:
  // Zeros that cost no memory before they are written to.
  std::byte* Add(const InputSpec& input, std::vector<std::int64_t> sizes) {
    const auto count = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1},
                                       std::multiplies<std::int64_t>());
    const std::size_t bytes = static_cast<std::size_t>(count) * SizeOf(input.dtype);
    constexpr std::size_t kAlignment = 64;
    void* memory = std::calloc(bytes + kAlignment, 1);
    if (memory == nullptr) throw std::bad_alloc();
    memory_.emplace_back(memory);
    std::size_t space = bytes + kAlignment;
    void* data = std::align(kAlignment, bytes, memory, space);
    sizes_.push_back(std::make_unique<std::vector<std::int64_t>>(std::move(sizes)));
    views_.push_back({.data = data,
                      .dtype = input.dtype,
                      .sizes = *sizes_.back(),
                      .strides = {},
                      .read_only = !input.mutated});
    return static_cast<std::byte*>(data);
  }

  void MoveTo(const InputMemory& device) {
    for (TensorView& view : views_) {
      const auto count = std::accumulate(view.sizes.begin(), view.sizes.end(), std::int64_t{1},
                                         std::multiplies<std::int64_t>());
      const std::size_t bytes = static_cast<std::size_t>(count) * SizeOf(view.dtype);
      on_device_.push_back(device.Copy({static_cast<const std::byte*>(view.data), bytes}));
      view.data = on_device_.back().get();
      view.cuda_device = 0;
    }
    memory_.clear();
  }

  std::string path_;
  std::vector<std::unique_ptr<void, Free>> memory_;
  std::vector<std::shared_ptr<void>> on_device_;
  std::vector<std::unique_ptr<std::vector<std::int64_t>>> sizes_;
  std::vector<TensorView> views_;
};

std::vector<Tensor> Run(const Model& model, const Case& inputs, const RunOptions& options = {}) {
  return ValueOrThrow(model.Run(inputs.views(), options));
}

std::string WriteOutputs(const std::vector<Tensor>& outputs, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  std::ostringstream json;
  json << "{\"outputs\": [";
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& output = outputs[i];
    file.write(static_cast<const char*>(output.data()),
               static_cast<std::streamsize>(output.numel() * SizeOf(output.dtype())));
    json << (i ? ", " : "") << "{\"dtype\": " << Quoted(internal::SafetensorsName(output.dtype()))
         << ", \"sizes\": [";
    for (std::size_t d = 0; d < output.rank(); ++d) json << (d ? ", " : "") << output.size(d);
    json << "]}";
  }
  json << "]}";
  if (!file.flush()) throw std::runtime_error("can't write " + path);
  return json.str();
}

// Without a stream of its caller's, a call returns when its work is done.
constexpr RunOptions kTimed{.outputs_on_device = true};

std::string Time(const Model& model, const Case& inputs, double seconds, std::size_t runs) {
  std::vector<double> times;
  times.reserve(1 << 20);
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  auto before = Clock::now();
  while (before < end || times.size() < runs) {
    Run(model, inputs, kTimed);
    const auto after = Clock::now();
    times.push_back(std::chrono::duration<double, std::nano>(after - before).count());
    before = after;
  }
  if (times.empty()) throw std::runtime_error("no run was asked for");
  std::sort(times.begin(), times.end());
  std::ostringstream json;
  json << "{\"runs\": " << times.size() << ", \"min_ns\": " << times.front()
       << ", \"median_ns\": " << times[times.size() / 2] << "}";
  return json.str();
}

// Each caller has inputs of its own, as models may write to them.
std::string TimeCallers(const Model& model, const Case& inputs, std::size_t count, double seconds,
                        const InputMemory* on_cuda) {
  std::vector<Case> cases;
  for (std::size_t i = 0; i < count; ++i) cases.emplace_back(model, inputs.path(), on_cuda);
  std::vector<std::function<void()>> callers;
  for (const Case& own : cases) callers.emplace_back([&] { Run(model, own, kTimed); });
  const Throughput found = MeasureThroughput(callers, seconds);
  std::ostringstream json;
  json << "{\"calls\": " << found.calls << ", \"seconds\": " << found.seconds
       << ", \"median_ns\": " << found.median_ns << ", \"p99_ns\": " << found.p99_ns
       << ", \"faults\": " << found.faults << ", \"waits\": " << found.waits;
  if (found.allocations >= 0) json << ", \"allocations\": " << found.allocations;
  json << "}";
  return json.str();
}

// Answers commands until standard input ends.
class Server {
 public:
  Server(const Model& model, const InputMemory* on_cuda) : model_(model), on_cuda_(on_cuda) {}

  std::string Answer(const std::string& line) {
    std::istringstream words(line);
    std::string command, name;
    words >> command >> name >> std::ws;
    if (command == "load") {
      cases_.insert_or_assign(name, Case(model_, Rest(words), on_cuda_));
      return "{}";
    }
    const auto found = cases_.find(name);
    if (found == cases_.end()) throw std::runtime_error("no such case is loaded: " + name);
    if (command == "run") return WriteOutputs(Run(model_, found->second), Rest(words));
    if (command == "callers") {
      std::size_t count = 1;
      double seconds = 0;
      words >> count >> seconds;
      return TimeCallers(model_, found->second, count, seconds, on_cuda_);
    }
    if (command != "time") throw std::runtime_error("no such command: " + command);
    double seconds = 0;
    std::size_t runs = 1;
    words >> seconds >> runs;
    return Time(model_, found->second, seconds, runs);
  }

 private:
  static std::string Rest(std::istringstream& words) {
    std::string rest;
    std::getline(words, rest);
    return rest;
  }

  const Model& model_;
  const InputMemory* on_cuda_;
  std::map<std::string, Case> cases_;
};

void Serve(const Model& model, const InputMemory* on_cuda) {
  Server server(model, on_cuda);
  std::puts("{}");
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    std::string answer;
    try {
      answer = server.Answer(line);
    } catch (const std::exception& error) {
      answer = "{\"error\": " + Quoted(error.what()) + "}";
    }
    std::puts(answer.c_str());
    std::fflush(stdout);
  }
}

void StartOnce(const Model& model, const std::string& inputs, const InputMemory* on_cuda) {
  const std::vector<Tensor> outputs = Run(model, Case(model, inputs, on_cuda));
  std::printf("{\"outputs\": %zu}\n", outputs.size());
  std::fflush(stdout);
  // Meanwhile the benchmark looks at the memory of this process.
  while (std::getchar() != EOF) {
  }
}

}  // namespace

int RunnerMain(const ProgramSpec& spec, int argc, char** argv, const InputMemory* on_cuda) {
  LoadOptions options{.num_runners = 1};
  std::string start;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with("--threads=")) {
      options.threads = std::atoi(argv[i] + std::string_view("--threads=").size());
    } else if (argument.starts_with("--callers=")) {
      options.num_runners = std::atoi(argv[i] + std::string_view("--callers=").size());
    } else if (argument == "--cuda-graphs") {
      options.cuda_graphs = true;
    } else if (argument.starts_with("--start=")) {
      start = argument.substr(std::string_view("--start=").size());
    } else {
      std::fprintf(stderr, "runner: unknown argument %s\n", argv[i]);
      return 2;
    }
  }
  try {
    const Model model = ValueOrThrow(Model::Load(spec, options));
    start.empty() ? Serve(model, on_cuda) : StartOnce(model, start, on_cuda);
  } catch (const std::exception& error) {
    std::printf("{\"error\": %s}\n", Quoted(error.what()).c_str());
    return 1;
  }
  return 0;
}

}  // namespace aoti::benchmark
