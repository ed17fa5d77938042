#include "runtime/slim/tests/fuzz_case.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <type_traits>

namespace aoti::slim::fuzz {
namespace {

constexpr std::int64_t kMostElements = 1 << 15;
// Most tensors are small: errors occur at boundaries, and a case should take microseconds.
constexpr std::int64_t kUsualElements = 1 << 11;

template <typename T>
T SpecialValue(Random& random) {
  using Limits = std::numeric_limits<T>;
  return random.Pick({Limits::quiet_NaN(), -Limits::quiet_NaN(), Limits::infinity(),
                      -Limits::infinity(), Limits::denorm_min(), T(-0.0), Limits::max(),
                      Limits::lowest(), Limits::epsilon()});
}

template <typename T>
T RandomValue(Random& random, bool special) {
  const std::int64_t small = random.Range(-9, 9);
  const bool now = special && random.Chance(0.1);
  if constexpr (std::is_same_v<T, bool>) {
    return small > 0;
  } else if constexpr (std::is_integral_v<T>) {
    if (now) {
      return random.Pick({std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), T(0)});
    }
    return static_cast<T>(small);
  } else if constexpr (std::is_same_v<T, std::complex<float>> ||
                       std::is_same_v<T, std::complex<double>>) {
    using Part = typename T::value_type;
    const auto real = RandomValue<Part>(random, special);
    return T(real, RandomValue<Part>(random, special));
  } else {
    return now ? T(SpecialValue<float>(random)) : T(static_cast<float>(small) / 4);
  }
}

template <typename T>
void FillAs(Random& random, bool special, void* data, std::int64_t count) {
  auto* values = static_cast<T*>(data);
  for (std::int64_t i = 0; i < count; ++i) values[i] = RandomValue<T>(random, special);
}

}  // namespace

std::uint64_t Random::Next() {  // SplitMix64
  state_ += 0x9e3779b97f4a7c15;
  std::uint64_t mixed = state_;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return mixed ^ (mixed >> 31);
}

std::int64_t Random::Range(std::int64_t low, std::int64_t high) {
  const auto count = static_cast<std::uint64_t>(high - low) + 1;
  return low + static_cast<std::int64_t>(Next() % count);
}

double Random::Unit() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

void Fail(const char* name, const std::string& what) {
  std::fprintf(stderr, "FAILED: %s: %s\n", name, what.c_str());
  std::abort();
}

Case::Case(std::uint64_t seed) : random(seed), wrong_(random.Chance(0.3)) {}

Case::~Case() {
  for (const Handle handle : handles_) aoti_torch_delete_tensor_object(handle);
  for (void* const blob : blobs_) std::free(blob);
}

std::int64_t Case::Size() {
  if (random.Chance(0.02)) return random.Range(18, 300);
  return random.Pick<std::int64_t>({0, 1, 1, 2, 2, 3, 3, 4, 5, 7, 8, 16, 17, 33});
}

Sizes Case::Shape(int least_rank, int most_rank) {
  auto rank = random.Range(least_rank, most_rank);
  if (rank == 5 && most_rank == 5 && random.Chance(0.2)) rank = 7;
  Sizes shape;
  const std::int64_t most = random.Chance(0.03) ? kMostElements : kUsualElements;
  std::int64_t count = 1;
  for (std::int64_t d = 0; d < rank; ++d) {
    std::int64_t size = Size();
    if (size == 0 && random.Chance(0.7)) size = 1;
    while (size > 1 && count * size > most) size /= 2;
    count *= std::max<std::int64_t>(size, 1);
    shape.push_back(size);
  }
  return shape;
}

Sizes Case::Broadcastable(const Sizes& shape) {
  Sizes result = shape;
  for (std::int64_t& size : result) {
    if (random.Chance(0.2)) size = 1;
  }
  if (!result.empty() && random.Chance(0.2)) result.erase(result.begin());
  return result;
}

ScalarType Case::AnyType() {
  return random.Pick({ScalarType::kUInt8, ScalarType::kInt8, ScalarType::kInt16, ScalarType::kInt32,
                      ScalarType::kInt64, ScalarType::kFloat16, ScalarType::kFloat32,
                      ScalarType::kFloat64, ScalarType::kComplex64, ScalarType::kComplex128,
                      ScalarType::kBool, ScalarType::kBFloat16});
}

ScalarType Case::RealType() {
  const ScalarType dtype = AnyType();
  return IsComplex(dtype) ? ScalarType::kFloat32 : dtype;
}

ScalarType Case::FloatType() {
  return random.Pick({ScalarType::kFloat32, ScalarType::kFloat32, ScalarType::kFloat64,
                      ScalarType::kFloat16, ScalarType::kBFloat16});
}

ScalarType Case::IntegerType() {
  return random.Pick({ScalarType::kUInt8, ScalarType::kInt8, ScalarType::kInt16, ScalarType::kInt32,
                      ScalarType::kInt64, ScalarType::kInt64});
}

void Case::Perturb(ScalarType& dtype, Sizes& sizes) {
  switch (random.Range(0, 3)) {
    case 0:
      dtype = AnyType();
      break;
    case 1:
      if (sizes.empty()) {
        sizes.push_back(Size());
      } else {
        sizes[static_cast<std::size_t>(random.Next() % sizes.size())] = Size();
      }
      break;
    case 2:
      if (!sizes.empty()) sizes.pop_back();
      break;
    default:
      sizes.push_back(random.Pick<std::int64_t>({0, 1, 2}));
  }
}

void Case::Fill(ScalarType dtype, void* data, std::int64_t count) {
  const bool special = random.Chance(0.3);
  DispatchAll(dtype, [&]<typename T>() { FillAs<T>(random, special, data, count); });
}

Handle Case::Make(ScalarType dtype, Sizes sizes, bool written, bool ascending) {
  if (Wrong()) Perturb(dtype, sizes);
  const std::size_t rank = sizes.size();
  // The order of dims in memory, beginning with the innermost one.
  std::vector<std::size_t> order(rank);
  std::iota(order.rbegin(), order.rend(), 0);
  const bool plain = random.Chance(0.4);
  if (!plain && random.Chance(0.5)) {
    if (rank >= 3 && random.Chance(0.5)) {  // channels last
      std::rotate(order.begin(), order.end() - 2, order.end() - 1);
    } else {
      for (std::size_t d = 1; d < rank; ++d) {
        std::swap(order[d], order[static_cast<std::size_t>(random.Next() % (d + 1))]);
      }
    }
  }
  const bool sliced = !plain && random.Chance(0.4);
  const bool expanded = !plain && !written && random.Chance(0.3);
  const std::int64_t offset = plain ? 0 : random.Range(0, 5);
  Sizes strides(rank);
  std::int64_t step = 1;
  std::int64_t last = offset;
  bool empty = false;
  for (const std::size_t d : order) {
    if (sliced && random.Chance(0.4)) step *= random.Range(2, 3);
    if (sliced && random.Chance(0.2)) step += random.Range(1, 5);
    const bool repeated = expanded && random.Chance(0.4);
    strides[d] = repeated ? 0 : step;
    if (sizes[d] == 0) empty = true;
    last += std::max<std::int64_t>(sizes[d] - 1, 0) * strides[d];
    if (!repeated) step *= std::max<std::int64_t>(sizes[d], 1);
  }
  // The memory ends with the tensor's last element, so that AddressSanitizer notices reads beyond
  // it.
  const std::int64_t count = empty ? offset : last + 1;
  const std::size_t bytes = static_cast<std::size_t>(count) * SizeOf(dtype);
  void* const blob = std::malloc(bytes);
  blobs_.push_back(blob);
  Fill(dtype, blob, count);
  if (ascending && IsFloating(dtype)) {
    DispatchFloating(dtype, [&]<typename T>() {
      auto* values = static_cast<T*>(blob);
      std::sort(values, values + count, [](T a, T b) {
        return static_cast<float>(a) < static_cast<float>(b) || (b != b && a == a);
      });
    });
  } else if (ascending && IsIntegral(dtype)) {
    DispatchReal(dtype, [&]<typename T>() {
      auto* values = static_cast<T*>(blob);
      std::sort(values, values + count);
    });
  }
  Handle handle = nullptr;
  const AOTITorchError error = aoti_torch_create_tensor_from_blob(
      blob, static_cast<std::int64_t>(rank), sizes.data(), strides.data(), offset,
      static_cast<std::int32_t>(dtype), aoti_torch_device_type_cpu(), 0, &handle);
  if (error != AOTI_TORCH_SUCCESS) Fail("create_tensor_from_blob", "it failed");
  handles_.push_back(handle);
  return handle;
}

Handle Case::In(ScalarType dtype, const Sizes& sizes) { return Make(dtype, sizes, false, false); }
Handle Case::Out(ScalarType dtype, const Sizes& sizes) { return Make(dtype, sizes, true, false); }
Handle Case::Ascending(ScalarType dtype, const Sizes& sizes) {
  return Make(dtype, sizes, false, true);
}

Handle Case::Index(ScalarType dtype, const Sizes& sizes, std::int64_t low, std::int64_t high) {
  const Handle handle = Make(dtype, sizes, false, false);
  void* data = nullptr;
  std::int64_t bytes = 0;
  std::int32_t type = 0;
  aoti_torch_get_dtype(handle, &type);
  aoti_torch_get_storage_size(handle, &bytes);
  if (static_cast<ScalarType>(type) != dtype || bytes == 0) return handle;
  data = blobs_.back();
  const bool outside = Wrong();
  DispatchReal(dtype, [&]<typename T>() {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      auto* values = static_cast<T*>(data);
      for (std::size_t i = 0; i < static_cast<std::size_t>(bytes) / sizeof(T); ++i) {
        values[i] = static_cast<T>(high > low ? random.Range(low, high - 1) : low);
        if (outside && random.Chance(0.1)) {
          values[i] = static_cast<T>(random.Pick<std::int64_t>({low - 1, high, high + 7, -high - 1,
                                                                std::numeric_limits<T>::max(),
                                                                std::numeric_limits<T>::min()}));
        }
      }
    }
  });
  return handle;
}

std::int64_t Case::Dim(std::size_t rank) {
  const auto count = std::max<std::int64_t>(static_cast<std::int64_t>(rank), 1);
  return Int(-count, count - 1);
}

std::int64_t Case::Int(std::int64_t low, std::int64_t high) {
  if (Wrong()) {
    return random.Pick<std::int64_t>(
        {-1, -2, 0, 1, low - 1, high + 1, 1 << 12, std::int64_t{1} << 31, std::int64_t{1} << 40,
         std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()});
  }
  return high < low ? low : random.Range(low, high);
}

double Case::Real() {
  if (Wrong()) return SpecialValue<double>(random);
  return static_cast<double>(random.Range(-8, 8)) / 4;
}

const char* Case::Word(std::initializer_list<const char*> words) {
  return Wrong() ? "wrong" : random.Pick(words);
}

const Sizes& Case::List(Sizes values) {
  if (Wrong() && random.Chance(0.3)) {
    if (random.Chance(0.5)) {
      values.push_back(random.Range(-1, 3));
    } else if (!values.empty()) {
      values.pop_back();
    }
  }
  for (std::int64_t& value : values) value = Int(value, value);
  return lists_.emplace_back(std::move(values));
}

Handle* Case::Result() { return &results_.emplace_back().handle; }
Handle* Case::OptionalResult() { return &results_.emplace_back(Slot{nullptr, true}).handle; }
void Case::Own(Handle handle) { results_.push_back(Slot{handle, false}); }

void Case::Check(const char* name, Handle handle) {
  std::int32_t type = 0;
  std::int64_t rank = 0;
  std::int64_t count = 0;
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  std::int64_t* sizes = nullptr;
  std::int64_t* strides = nullptr;
  void* data = nullptr;
  aoti_torch_get_dtype(handle, &type);
  aoti_torch_get_dim(handle, &rank);
  aoti_torch_get_numel(handle, &count);
  aoti_torch_get_sizes(handle, &sizes);
  aoti_torch_get_strides(handle, &strides);
  aoti_torch_get_storage_offset(handle, &offset);
  aoti_torch_get_storage_size(handle, &bytes);
  aoti_torch_get_data_ptr(handle, &data);
  const std::size_t element = SizeOf(static_cast<ScalarType>(type));
  digest_ = (digest_ + static_cast<std::uint64_t>(type) + 1) * 0x100000001b3;
  std::int64_t last = offset;
  std::int64_t product = 1;
  for (std::int64_t d = 0; d < rank; ++d) {
    if (sizes[d] < 0 || strides[d] < 0) Fail(name, "a result has a negative size or stride");
    digest_ = (digest_ + static_cast<std::uint64_t>(sizes[d]) + 1) * 0x100000001b3;
    product *= sizes[d];
  }
  if (product != count) Fail(name, "a result's number of elements is not its sizes' product");
  if (count == 0) return;
  for (std::int64_t d = 0; d < rank; ++d) last += (sizes[d] - 1) * strides[d];
  if (offset < 0 || (last + 1) * static_cast<std::int64_t>(element) > bytes) {
    Fail(name, "a result reaches beyond its storage");
  }
  // Reads the memory, so that AddressSanitizer notices if it was freed.
  const auto* first = static_cast<const unsigned char*>(data);
  const volatile unsigned char* const end =
      first + static_cast<std::size_t>(last - offset + 1) * element - 1;
  static_cast<void>(*static_cast<const volatile unsigned char*>(first));
  static_cast<void>(*end);
}

void Case::Finish(const char* name, AOTITorchError error) {
  digest_ = digest_ * 31 + static_cast<std::uint64_t>(error);
  for (Slot& slot : results_) {
    if (error != AOTI_TORCH_SUCCESS) {
      if (slot.handle != nullptr) Fail(name, "a result is set though the call failed");
      continue;
    }
    if (slot.handle == nullptr) {
      if (!slot.optional) Fail(name, "a result is not set though the call succeeded");
      continue;
    }
    Check(name, slot.handle);
    aoti_torch_delete_tensor_object(slot.handle);
  }
  results_.clear();
}

}  // namespace aoti::slim::fuzz
