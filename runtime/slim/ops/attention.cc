// scaled_dot_product_attention, computed for blocks of queries and keys with a running softmax, so
// that its memory does not grow with the number of queries or keys.

#include "runtime/slim/kernels/attention.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numbers>
#include <optional>

#include "runtime/core/parallel.h"
#include "runtime/slim/abi/declarations.h"
#include "runtime/slim/abi/guarded.h"
#include "runtime/slim/attention/double.h"
#include "runtime/slim/attention/mask.h"
#include "runtime/slim/attention/problem.h"
#include "runtime/slim/cpu/cpu.h"
#include "runtime/slim/cpu/kernels.h"
#include "runtime/slim/kernels/rounding.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLn2 = std::numbers::ln2_v<float>;
// Rows of queries for which each block of keys is packed once.
constexpr std::int64_t kUnitRows = 192;
// With no more rows than this, the keys are split among threads too. The sizes are fixed, so that
// results do not depend on the number of threads.
constexpr std::int64_t kSplitRows = 12;
constexpr std::int64_t kPartKeys = 256;
constexpr std::int64_t kFewParts = 8;
// The number of multiplications that justifies another thread.
constexpr std::int64_t kGrain = 1 << 16;

const AttentionKernels& Kernels() { return AOTI_SLIM_CURRENT_KERNELS(kAttention); }

AttentionType TypeOf(ScalarType dtype) {
  switch (dtype) {
    case ScalarType::kFloat16:
      return AttentionType::kHalf;
    case ScalarType::kBFloat16:
      return AttentionType::kBFloat16;
    default:
      return AttentionType::kFloat;
  }
}

std::int64_t Padded(std::int64_t depth) {
  return (depth + kAttentionPad - 1) / kAttentionPad * kAttentionPad;
}

// Copies rows [count, size] of any dtype and strides as float32, contiguous and padded with zeros.
void Gather(const AttentionKernels& kernels, const std::byte* from, ScalarType dtype,
            std::int64_t row_stride, std::int64_t stride, std::int64_t count, std::int64_t size,
            float* to, std::int64_t to_stride) {
  const auto width = static_cast<std::int64_t>(SizeOf(dtype));
  for (std::int64_t row = 0; row < count; ++row) {
    const std::byte* source = from + row * row_stride * width;
    float* target = to + row * to_stride;
    if (stride == 1) {
      kernels.widen(source, TypeOf(dtype), target, size);
    } else {
      for (std::int64_t i = 0; i < size; ++i) {
        kernels.widen(source + i * stride * width, TypeOf(dtype), target + i, 1);
      }
    }
    std::fill(target + size, target + to_stride, 0.0f);
  }
}

// The same for bfloat16, as it is.
void GatherBits(const std::byte* from, std::int64_t row_stride, std::int64_t stride,
                std::int64_t count, std::int64_t size, std::uint16_t* to, std::int64_t to_stride) {
  for (std::int64_t row = 0; row < count; ++row) {
    const auto* source = reinterpret_cast<const std::uint16_t*>(from) + row * row_stride;
    std::uint16_t* target = to + row * to_stride;
    if (stride == 1) {
      std::memcpy(target, source, static_cast<std::size_t>(size) * sizeof(std::uint16_t));
    } else {
      for (std::int64_t i = 0; i < size; ++i) target[i] = source[i * stride];
    }
    std::fill(target + size, target + to_stride, std::uint16_t{0});
  }
}

// The keys or the values of one head.
struct Side {
  Side(const Tensor& tensor, std::int64_t batch, std::int64_t head)
      : dtype(tensor.dtype()),
        row_stride(tensor.stride(2)),
        stride(tensor.size(3) == 1 ? 1 : tensor.stride(3)),
        depth(tensor.size(3)),
        data(tensor.data<std::byte>() + (batch * tensor.stride(0) + head * tensor.stride(1)) *
                                            static_cast<std::int64_t>(SizeOf(dtype))) {}

  const std::byte* Row(std::int64_t row) const {
    return data + row * row_stride * static_cast<std::int64_t>(SizeOf(dtype));
  }

  // Copies rows in the layout that the kernels read: as they are for pairs, else as float32; padded
  // with zeros.
  void Copy(const AttentionKernels& kernels, bool pairs, std::int64_t first, std::int64_t count,
            float* to) const {
    if (pairs) {
      GatherBits(Row(first), row_stride, stride, count, depth, reinterpret_cast<std::uint16_t*>(to),
                 Padded(depth));
    } else {
      Gather(kernels, Row(first), dtype, row_stride, stride, count, depth, to, Padded(depth));
    }
  }

  // Whether the kernels can read the rows where they lie. pairs: in bfloat16, with an even stride
  // and aligned to 4 bytes; else in float32.
  bool InPlace(bool pairs) const {
    const bool paired = row_stride % 2 == 0 && reinterpret_cast<std::uintptr_t>(data) % 4 == 0;
    return stride == 1 && depth % kAttentionPad == 0 &&
           (pairs ? paired : dtype == ScalarType::kFloat32);
  }

  // The rows from `first` on in the layout that the kernels read: in place, or copied to `buffer`.
  const void* Rows(const AttentionKernels& kernels, bool pairs, std::int64_t first,
                   std::int64_t count, float* buffer, std::int64_t* rows_stride) const {
    if (InPlace(pairs)) {
      *rows_stride = row_stride;
      return Row(first);
    }
    *rows_stride = Padded(depth);
    Copy(kernels, pairs, first, count, buffer);
    return buffer;
  }

  ScalarType dtype;
  std::int64_t row_stride, stride, depth;
  const std::byte* data;
};

// The state of the running softmax for `rows` rows, as in AttentionBlock.
struct State {
  float* maximum;
  float* sum;
  float* result;  // [rows, padded depth of values]
};

bool CanAttendPairs(const AttentionKernels& kernels, const AttentionProblem& problem) {
  return problem.query->dtype() == ScalarType::kBFloat16 && kernels.attend_pairs != nullptr &&
         CurrentCpuMultipliesPairs() && problem.group * problem.queries > kAttentionFewRows;
}

// Whether the heads of a key or value lie side by side, so that they should be read together.
bool SideBySide(const Tensor& tensor) {
  return tensor.stride(1) < tensor.stride(2) && Side(tensor, 0, 0).InPlace(false);
}

class Worker {
 public:
  // mask: may be null. heads: of keys, that are computed together; 1 if there are many rows.
  Worker(const AttentionKernels& kernels, const AttentionProblem& problem,
         const AttentionMask* mask, std::int64_t rows, std::int64_t heads)
      : kernels_(kernels),
        problem_(problem),
        mask_(mask),
        depth_(Padded(problem.depth)),
        value_depth_(Padded(problem.value_depth)),
        pairs_(CanAttendPairs(kernels, problem)),
        blocks_(heads),
        query_(heads * rows * depth_),
        key_(kAttentionKeys * depth_),
        value_(kAttentionKeys * value_depth_),
        scratch_(std::max(AttentionScratch(depth_, value_depth_),
                          heads * AttentionFewScratch(std::min(rows, kAttentionFewRows)))),
        visible_(heads * rows),
        mask_rows_(heads * rows) {}

  // Adds the keys first_key..last_key to the rows from first_row on, of a group of heads that share
  // a head of keys (one head after the other), for `heads` heads of keys. state_of(h): of head h.
  template <typename StateOf>
  void Run(std::int64_t batch, std::int64_t first_group, std::int64_t heads, std::int64_t first_row,
           std::int64_t rows, std::int64_t first_key, std::int64_t last_key,
           const StateOf& state_of) {
    for (std::int64_t h = 0; h < heads; ++h) {
      float* query = query_.data() + h * rows * depth_;
      LoadQueries(batch, first_group + h, first_row, rows, query);
      const State state = state_of(h);
      std::fill_n(state.maximum, rows, -kInfinity);
      std::fill_n(state.sum, rows, 0.0f);
      std::fill_n(state.result, rows * value_depth_, 0.0f);
      AttentionBlock& block = blocks_[h] = {};
      block.rows = rows;
      block.depth = depth_;
      block.value_depth = value_depth_;
      block.scale = static_cast<float>(problem_.scale);
      block.query = query;
      block.mask = mask_ == nullptr ? nullptr : mask_rows_.data() + h * rows;
      block.visible = visible_.data() + h * rows;
      block.maximum = state.maximum;
      block.sum = state.sum;
      block.result = state.result;
      block.scratch = scratch_.data();
    }
    for (std::int64_t key = first_key; key < last_key; key += kAttentionKeys) {
      std::int32_t most = 0;
      for (std::int64_t h = 0; h < heads; ++h) {
        AttentionBlock& block = blocks_[h];
        const std::int64_t group = first_group + h;
        const std::int64_t most_keys = std::min(kAttentionKeys, last_key - key);
        const std::int32_t keys = Look(batch, group, first_row, rows, key, most_keys, h * rows);
        most = std::max(most, keys);
        block.keys = keys;
        if (keys == 0) continue;
        const Side side(*problem_.key, batch, group), values(*problem_.value, batch, group);
        block.key = side.Rows(kernels_, pairs_, key, keys, key_.data(), &block.key_stride);
        block.value = values.Rows(kernels_, pairs_, key, keys, value_.data(), &block.value_stride);
        block.more = keys == most_keys && key + keys < problem_.keys && side.InPlace(pairs_);
      }
      if (most == 0) continue;
      if (rows <= kAttentionFewRows && !pairs_) {
        kernels_.attend_few(blocks_.data(), heads);
      } else {
        (pairs_ ? kernels_.attend_pairs : kernels_.attend)(blocks_[0]);
      }
    }
  }

 private:
  // Fills visible_ and mask_rows_ from `at` on for a block of keys; returns the largest number of
  // keys that a row sees.
  std::int32_t Look(std::int64_t batch, std::int64_t group, std::int64_t first_row,
                    std::int64_t rows, std::int64_t key, std::int64_t keys, std::int64_t at) {
    std::int32_t most = 0;
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t query = (first_row + row) % problem_.queries;
      std::int64_t end = problem_.causal ? query + 1 : problem_.keys;
      if (mask_ != nullptr) {
        const std::int64_t head = group * problem_.group + (first_row + row) / problem_.queries;
        const AttentionMask::Row mask = mask_->At(batch, head, query);
        end = mask.begin < key + keys ? std::min(end, mask.end) : 0;
        mask_rows_[at + row] = mask.data + key;
      }
      visible_[at + row] = static_cast<std::int32_t>(std::clamp<std::int64_t>(end - key, 0, keys));
      most = std::max(most, visible_[at + row]);
    }
    return most;
  }

  void LoadQueries(std::int64_t batch, std::int64_t group, std::int64_t first_row,
                   std::int64_t rows, float* queries) {
    const Tensor& query = *problem_.query;
    std::int64_t row = 0;
    while (row < rows) {  // one head in each pass
      const std::int64_t head = (first_row + row) / problem_.queries;
      const std::int64_t first = (first_row + row) % problem_.queries;
      const std::int64_t count = std::min(rows - row, problem_.queries - first);
      const Side side(query, batch, group * problem_.group + head);
      float* to = queries + row * depth_ / (pairs_ ? 2 : 1);
      side.Copy(kernels_, pairs_, first, count, to);
      row += count;
    }
  }

  const AttentionKernels& kernels_;
  const AttentionProblem& problem_;
  const AttentionMask* mask_;
  std::int64_t depth_, value_depth_;
  bool pairs_;  // numbers stay bfloat16
  Scratch<AttentionBlock> blocks_;
  Scratch<float> query_, key_, value_, scratch_;
  Scratch<std::int32_t> visible_;
  Scratch<const float*> mask_rows_;
};

// Adds the state from other keys to the state of one row.
void Merge(const State& into, const State& from, std::int64_t row, std::int64_t depth) {
  if (from.maximum[row] == -kInfinity) return;  // no visible keys
  const float most = std::max(into.maximum[row], from.maximum[row]);
  const float shift = most == -kInfinity ? 0.0f : most;
  const float ours = std::exp2(into.maximum[row] - shift);
  const float theirs = std::exp2(from.maximum[row] - shift);
  into.maximum[row] = most;
  into.sum[row] = into.sum[row] * ours + from.sum[row] * theirs;
  for (std::int64_t d = row * depth; d < (row + 1) * depth; ++d) {
    into.result[d] = into.result[d] * ours + from.result[d] * theirs;
  }
}

// Writes finished rows to the result. A row without visible keys is 0, as in PyTorch.
void Write(const AttentionKernels& kernels, const AttentionProblem& problem, std::int64_t batch,
           std::int64_t group, std::int64_t first_row, std::int64_t rows, const State& state) {
  const Tensor& output = *problem.output;
  const Tensor& logsumexp = *problem.logsumexp;
  const auto width = static_cast<std::int64_t>(SizeOf(output.dtype()));
  const std::int64_t depth = problem.value_depth;
  const std::int64_t stride = output.stride(3);
  const bool dense = stride == 1 || depth == 1;
  Scratch<std::byte> line(dense ? 0 : static_cast<std::size_t>(depth * width));
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t head = group * problem.group + (first_row + row) / problem.queries;
    const std::int64_t query = (first_row + row) % problem.queries;
    const float maximum = state.maximum[row] == -kInfinity ? 0.0f : state.maximum[row];
    const float sum = state.sum[row] == 0.0f ? 1.0f : state.sum[row];
    logsumexp.data<float>()[batch * logsumexp.stride(0) + head * logsumexp.stride(1) +
                            query * logsumexp.stride(2)] = maximum * kLn2 + std::log(sum);
    const float* from = state.result + row * Padded(depth);
    std::byte* to =
        output.data<std::byte>() +
        (batch * output.stride(0) + head * output.stride(1) + query * output.stride(2)) * width;
    kernels.narrow(from, 1.0f / sum, TypeOf(output.dtype()), dense ? to : line.data(), depth);
    for (std::int64_t d = 0; !dense && d < depth; ++d) {
      std::memcpy(to + d * stride * width, line.data() + d * width,
                  static_cast<std::size_t>(width));
    }
  }
}

// Of a few rows: enough for another thread, and so many that a long cache has few parts to merge.
std::int64_t FewPartKeys(const AttentionProblem& problem) {
  constexpr std::int64_t kStep = 16;
  const std::int64_t each =
      problem.key_heads * problem.group * problem.queries * (problem.depth + problem.value_depth);
  const std::int64_t keys =
      std::max(kGrain / std::max<std::int64_t>(1, each), CeilDiv(problem.keys, kFewParts));
  return std::min(RoundUp(keys, kStep), kPartKeys);
}

void Attend(const AttentionProblem& problem) {
  const AttentionKernels& kernels = Kernels();
  const std::int64_t all_rows = problem.group * problem.queries;
  const std::int64_t groups = problem.batch * problem.key_heads;
  if (all_rows == 0 || groups == 0) return;
  const std::int64_t work =
      groups * all_rows * problem.keys * (problem.depth + problem.value_depth);
  const int threads =
      static_cast<int>(std::clamp<std::int64_t>(work / kGrain, 1, internal::MaxThreads()));

  const bool few = all_rows <= kAttentionFewRows;
  const std::int64_t part_keys = few ? FewPartKeys(problem) : kPartKeys;
  const std::int64_t parts =
      all_rows <= kSplitRows ? std::max<std::int64_t>(CeilDiv(problem.keys, part_keys), 1) : 1;
  const std::int64_t heads =
      few && SideBySide(*problem.key) && SideBySide(*problem.value) ? problem.key_heads : 1;
  const std::int64_t unit_rows = std::min(all_rows, kUnitRows);
  const std::int64_t row_units = (all_rows + unit_rows - 1) / unit_rows;
  const std::int64_t group_units = problem.key_heads / heads;
  const std::int64_t units = problem.batch * group_units * row_units * parts;

  const std::int64_t row_floats = 2 + Padded(problem.value_depth);
  const auto state_at = [&](float* data) {
    return State{data, data + unit_rows, data + 2 * unit_rows};
  };
  // [batch, parts, key_heads]
  Scratch<float> partial(parts == 1 ? 0 : groups * parts * unit_rows * row_floats);
  std::optional<AttentionMask> mask;
  if (problem.mask != nullptr && problem.keys > 0) mask.emplace(kernels, problem);
  std::atomic<std::int64_t> next{0};
  internal::Parallel(static_cast<int>(std::min<std::int64_t>(threads, units)), [&](int, int) {
    Worker worker(kernels, problem, mask ? &*mask : nullptr, unit_rows, heads);
    Scratch<float> own(parts == 1 ? heads * unit_rows * row_floats : 0);
    for (std::int64_t unit; (unit = next.fetch_add(1, std::memory_order_relaxed)) < units;) {
      const std::int64_t first_row = unit % row_units * unit_rows;
      const std::int64_t rows = std::min(unit_rows, all_rows - first_row);
      const std::int64_t group = unit / row_units % group_units * heads;
      const std::int64_t part = unit / row_units / group_units % parts;
      const std::int64_t batch = unit / row_units / group_units / parts;
      const std::int64_t slot = (batch * parts + part) * problem.key_heads + group;
      float* states = parts == 1 ? own.data() : partial.data() + slot * unit_rows * row_floats;
      const auto state_of = [&](std::int64_t head) {
        return state_at(states + head * unit_rows * row_floats);
      };
      const std::int64_t last_key =
          parts == 1 ? problem.keys : std::min(problem.keys, (part + 1) * part_keys);
      worker.Run(batch, group, heads, first_row, rows, part * part_keys, last_key, state_of);
      for (std::int64_t h = 0; h < heads && parts == 1; ++h) {
        Write(kernels, problem, batch, group + h, first_row, rows, state_of(h));
      }
    }
  });
  for (std::int64_t group = 0; parts > 1 && group < groups; ++group) {
    const std::int64_t batch = group / problem.key_heads, head = group % problem.key_heads;
    const auto state_of = [&](std::int64_t part) {
      const std::int64_t slot = (batch * parts + part) * problem.key_heads + head;
      return state_at(partial.data() + slot * unit_rows * row_floats);
    };
    for (std::int64_t part = 1; part < parts; ++part) {
      for (std::int64_t row = 0; row < unit_rows; ++row) {
        Merge(state_of(0), state_of(part), row, Padded(problem.value_depth));
      }
    }
    Write(kernels, problem, batch, head, 0, unit_rows, state_of(0));
  }
}

}  // namespace
}  // namespace aoti::slim

using namespace aoti::slim;

extern "C" {

AOTITorchError aoti_torch_cpu__scaled_dot_product_flash_attention_for_cpu(
    AtenTensorHandle query, AtenTensorHandle key, AtenTensorHandle value, double dropout_p,
    int32_t is_causal, AtenTensorHandle* attn_mask, double* scale, AtenTensorHandle* ret0,
    AtenTensorHandle* ret1) {
  return Guarded([&] {
    AttentionProblem problem(*query, *key, *value, attn_mask == nullptr ? nullptr : *attn_mask,
                             dropout_p, is_causal != 0, scale);
    if (query->dtype() == ScalarType::kFloat64) {
      AttendDouble(problem);
    } else {
      Attend(problem);
    }
    *ret0 = problem.output.release();
    *ret1 = problem.logsumexp.release();
  });
}

}  // extern "C"
