// Pieces of error messages.

#ifndef AOTI_RUNTIME_CORE_TEXT_H_
#define AOTI_RUNTIME_CORE_TEXT_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "aoti/dtype.h"
#include "aoti/program_spec.h"

namespace aoti::internal {

inline void Append(std::string& text, std::string_view part) { text += part; }
inline void Append(std::string& text, char part) { text += part; }
// With up to six digits, as streams print a number.
void Append(std::string& text, double number);
inline void Append(std::string& text, DType dtype) { text += to_string(dtype); }
template <typename Int>
  requires(std::is_integral_v<Int> && !std::is_same_v<Int, char>)
void Append(std::string& text, Int number) {
  text += std::to_string(number);
}

// Concatenates the parts.
template <typename... Parts>
std::string StrCat(const Parts&... parts) {
  std::string text;
  (Append(text, parts), ...);
  return text;
}

// "[2, 3]"
std::string ShapeText(std::span<const std::int64_t> sizes);
// "[batch, seq]"
std::string ShapeText(std::span<const Extent> sizes);
// "int64[batch, seq]"
std::string TypeText(const InputSpec& input);

}  // namespace aoti::internal

#endif  // AOTI_RUNTIME_CORE_TEXT_H_
