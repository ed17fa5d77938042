// Prints a number with its digits reversed: bazel run //examples/cc_reverse -- 12345

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include "examples/cc_reverse/reverser.h"

using examples::cc_reverse::Reverser;

int main(int argc, char** argv) {
  const std::string number = argc > 1 ? argv[1] : "";
  if (number.empty() || number.find_first_not_of("0123456789") != std::string::npos) {
    std::cerr << "usage: cc_reverse DIGITS\n";
    return 2;
  }
  const auto model = Reverser::Load();
  if (!model.ok()) {
    std::cerr << model.error().message() << "\n";
    return 1;
  }

  std::vector<std::int64_t> digits;
  for (const char c : number) digits.push_back(c - '0');
  const auto encoded =
      model->Encode({.digits = {digits.data(), {1, static_cast<std::int64_t>(digits.size())}}});
  if (!encoded.ok()) {
    std::cerr << encoded.error().message() << "\n";
    return 1;
  }
  for (std::size_t i = 0; i < digits.size(); ++i) {
    // The memory is passed on as it is, without a copy; the model counts the steps itself.
    const auto decoded = model->Decode({.memory = encoded->output});
    if (!decoded.ok()) {
      std::cerr << decoded.error().message() << "\n";
      return 1;
    }
    const std::span<const float> logits = decoded->output.span();
    std::cout << std::ranges::max_element(logits) - logits.begin();
  }
  std::cout << "\n";
}
