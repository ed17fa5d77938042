#include "runtime/core/text.h"

#include <sstream>

namespace aoti::internal {
namespace {

template <typename T, typename ToText>
std::string Bracketed(std::span<const T> items, const ToText& to_text) {
  std::string text = "[";
  for (const T& item : items) {
    if (text.size() > 1) text += ", ";
    text += to_text(item);
  }
  return text + "]";
}

}  // namespace

void Append(std::string& text, double number) {
  std::ostringstream out;
  out << number;
  text += out.str();
}

std::string ShapeText(std::span<const std::int64_t> sizes) {
  return Bracketed(sizes, [](std::int64_t size) { return std::to_string(size); });
}

std::string ShapeText(std::span<const Extent> sizes) {
  return Bracketed(sizes, [](const Extent& extent) { return std::string(extent.text); });
}

std::string TypeText(const InputSpec& input) {
  if (input.number) return input.dtype == DType::kInt64 ? "int" : "float";
  return StrCat(input.dtype, ShapeText(input.sizes));
}

}  // namespace aoti::internal
