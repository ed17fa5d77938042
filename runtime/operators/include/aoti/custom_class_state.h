// The state of an object of a custom class: the arguments of its constructor, as the bytes of a
// tensor. A model stores them like a weight.
//
// They begin with the constructor's signature. Each argument follows: a number as 8 bytes, a text
// or a list as its length and its elements, a tensor as its dtype, sizes and elements.

#ifndef AOTI_CUSTOM_CLASS_STATE_H_
#define AOTI_CUSTOM_CLASS_STATE_H_

#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace aoti::custom_class {

using torch::stable::Tensor;

template <typename T>
inline constexpr bool kIsField =
    std::is_same_v<T, Tensor> || std::is_same_v<T, std::int64_t> || std::is_same_v<T, double> ||
    std::is_same_v<T, bool> || std::is_same_v<T, std::string>;
template <typename T>
inline constexpr bool kIsField<std::vector<T>> = kIsField<T> && !std::is_same_v<T, bool>;
template <typename T>
inline constexpr bool kIsField<std::vector<std::vector<T>>> = false;

class [[gnu::visibility("hidden")]] Writer {
 public:
  template <typename T>
  void Write(const T& value) {
    static_assert(std::is_arithmetic_v<T>);
    Append(&value, sizeof(value));
  }
  void Write(bool value) { Write(static_cast<std::int64_t>(value)); }
  void Write(const std::string& text) {
    Write(static_cast<std::int64_t>(text.size()));
    Append(text.data(), text.size());
  }
  void Write(const Tensor& tensor) {
    const Tensor values = torch::stable::contiguous(tensor);
    Write(static_cast<std::int64_t>(values.scalar_type()));
    Write(std::vector<std::int64_t>(values.sizes().begin(), values.sizes().end()));
    const auto bytes = static_cast<std::size_t>(values.numel()) * values.element_size();
    Write(static_cast<std::int64_t>(bytes));
    Append(values.data_ptr(), bytes);
  }
  template <typename T>
  void Write(const std::vector<T>& list) {
    Write(static_cast<std::int64_t>(list.size()));
    for (const T& item : list) Write(item);
  }

  // uint8[n]; `like` is a tensor on the CPU.
  Tensor Bytes(const Tensor& like) const {
    Tensor result = torch::stable::new_empty(like, {static_cast<std::int64_t>(bytes_.size())},
                                             torch::headeronly::ScalarType::Byte);
    std::memcpy(result.mutable_data_ptr(), bytes_.data(), bytes_.size());
    return result;
  }

 private:
  void Append(const void* data, std::size_t size) {
    if (size > 0) bytes_.append(static_cast<const char*>(data), size);
  }
  std::string bytes_;
};

class [[gnu::visibility("hidden")]] Reader {
 public:
  explicit Reader(const Tensor& state)
      : state_(state),
        next_(static_cast<const char*>(state.data_ptr())),
        end_(next_ + state.numel()) {}

  template <typename T>
  T Read() {
    if constexpr (std::is_same_v<T, bool>) {
      return Read<std::int64_t>() != 0;
    } else if constexpr (std::is_arithmetic_v<T>) {
      T value;
      std::memcpy(&value, Take(sizeof(T)), sizeof(T));
      return value;
    } else if constexpr (std::is_same_v<T, std::string>) {
      const auto size = Read<std::int64_t>();
      return std::string(Take(size), static_cast<std::size_t>(size));
    } else if constexpr (std::is_same_v<T, Tensor>) {
      const auto dtype = static_cast<torch::headeronly::ScalarType>(Read<std::int64_t>());
      Tensor tensor = torch::stable::new_empty(state_, Read<std::vector<std::int64_t>>(), dtype);
      const auto size = Read<std::int64_t>();
      if (size != tensor.numel() * static_cast<std::int64_t>(tensor.element_size())) Damaged();
      if (size > 0) {
        std::memcpy(tensor.mutable_data_ptr(), Take(size), static_cast<std::size_t>(size));
      }
      return tensor;
    } else {
      T list;
      for (auto left = Read<std::int64_t>(); left > 0; --left) {
        list.push_back(Read<typename T::value_type>());
      }
      return list;
    }
  }

 private:
  const char* Take(std::int64_t size) {
    if (size < 0 || size > end_ - next_) Damaged();
    return std::exchange(next_, next_ + size);
  }

  [[noreturn]] static void Damaged() { throw std::runtime_error("its state is damaged"); }

  const Tensor& state_;
  const char* next_;
  const char* const end_;
};

// The constructor of T with these arguments.
template <typename T, typename... Fields>
struct [[gnu::visibility("hidden")]] State {
  // "Tensor edges, float outside". Made on first use: registrations run in any order.
  static std::string& signature() {
    static auto* const text = new std::string;
    return *text;
  }

  static Tensor New(const Tensor& like, Fields... fields) {
    Writer writer;
    writer.Write(signature());
    (writer.Write(fields), ...);
    return writer.Bytes(like);
  }

  static std::shared_ptr<const T> Make(const Tensor& state) {
    Reader reader(state);
    const auto found = reader.Read<std::string>();
    if (found != signature()) {
      throw std::runtime_error("the model has the arguments (" + found + ") for its constructor, " +
                               "which takes (" + signature() + "). Export the model again");
    }
    // Braces: the fields are read in this order.
    std::tuple<Fields...> fields{reader.Read<Fields>()...};
    return std::make_from_tuple<Shared>(std::move(fields)).object;
  }

 private:
  struct Shared {
    explicit Shared(Fields... fields) : object(std::make_shared<const T>(std::move(fields)...)) {}
    std::shared_ptr<const T> object;
  };
};

}  // namespace aoti::custom_class

#endif  // AOTI_CUSTOM_CLASS_STATE_H_
